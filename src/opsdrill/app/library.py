"""The library: the scenarios of a place by their keys, wherever they are, and edits of those in
the store.

What is in packs and folders is only read here: whoever wants to edit it copies it under a key of
its own. A version is the digest of a scenario with its support files; for one in the store these
are all files that are kept with it. What lint calls an error cannot be kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from opsdrill.app import scenarios
from opsdrill.app.editing import Expected, NotEditable, Shown, Version
from opsdrill.app.library_rows import Row, RowPage, row_of_file, row_of_shelf, words_of
from opsdrill.app.patience import patient
from opsdrill.app.recorded import KeptRuns
from opsdrill.app.scenario_files import NewFile, check_sizes, check_source
from opsdrill.app.shelf import kept_scenarios, loaded
from opsdrill.app.wiring import Place
from opsdrill.errors import Conflict, InvalidInput, NotThere, Problem
from opsdrill.model.fields import KEY
from opsdrill.model.run import StoredFile
from opsdrill.scenarios.catalogue import Catalogue, Entry, Origin, Readings
from opsdrill.scenarios.document import Document
from opsdrill.scenarios.files import Support
from opsdrill.scenarios.lint import lint
from opsdrill.scenarios.load import REFUSED, LoadedScenario, load_data, load_text
from opsdrill.scenarios.text import as_data
from opsdrill.store.cursor import check_limit, decode_key, encode_key
from opsdrill.store.shelf import KeptScenario, Shelf
from opsdrill.store.store import Store

__all__ = [
    "Change", "Expected", "Library", "NotEditable", "Row", "RowPage", "Shown", "Version",
]  # fmt: skip

RESERVED = frozenset({"schema"})
"""Keys that a scenario of the store cannot have: the API has something else under that name."""


Change = Callable[[dict[str, object]], object]
"""From a scenario as plain data to what it is to be."""
_KEY = re.compile(KEY)
_PATIENCE = 20.0
"""Seconds that a caller waits for what kept runs show."""


class Library:
    """The scenarios of one place. Several threads may use it.

    Args:
        place: where it is.
        store: of the place.
        readings: what was read of the folders before.
    """

    def __init__(self, place: Place, store: Store, readings: Readings | None = None) -> None:
        self._place = place
        self._store = store
        self._readings = readings or Readings()

    @property
    def _shelf(self) -> Shelf:
        return self._store.shelf()

    # reading

    def catalogue(self) -> Catalogue:
        """All scenarios."""
        return scenarios.catalogue(self._place, kept_scenarios(self._store), self._readings)

    def _files(self) -> Catalogue:
        return scenarios.catalogue(self._place, readings=self._readings)

    def page(
        self,
        *,
        search: str | None = None,
        tag: str | None = None,
        origin: Origin | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> RowPage:
        """One page of all scenarios, by key; those in files are listed too where they are broken.

        Args:
            search: a text that must be in key, title or a tag, in capitals or not.
            tag: a tag that a scenario must have.
            origin: where it must be.
            limit: 1 to 200.
            cursor: where the page before ended.

        Raises:
            UsageError: the cursor is no page's, or `limit` is out of its bounds.
        """
        check_limit(limit)
        after = None if cursor is None else decode_key(cursor)
        found: dict[str, Row] = {}
        if origin in (None, "kept"):
            kept = self._shelf.page(search=search, tag=tag, limit=limit + 1, cursor=cursor)
            found.update((row.key, row_of_shelf(row)) for row in kept.rows)
        if origin != "kept":
            for row in self._rows_of_files():
                if (
                    (after is None or row.key > after)
                    and (origin is None or row.origin == origin)
                    and (tag is None or tag in row.tags)
                    and (search is None or search.casefold() in words_of(row))
                ):
                    found.setdefault(row.key, row)
        keys = sorted(found)
        shown = tuple(found[key] for key in keys[:limit])
        return RowPage(shown, encode_key(keys[limit - 1]) if len(keys) > limit else None)

    def _rows_of_files(self) -> Iterable[Row]:
        entries = self._files().entries
        return (row_of_file(entry) for entry in entries if entry.key is not None)

    def get(self, key: str, number: int | None = None) -> Shown:
        """One scenario, or an earlier version of it (0: the one that a file has).

        Raises:
            NotThere: there is none, or no such version.
            InvalidInput: it is in a file and broken.
        """
        kept = self._kept(key, number)
        if kept is not None:
            return self._shown(kept)
        entry = self._in_files(key)
        if entry is None:
            raise NotThere("scenario", key)
        if number not in (None, 0):
            raise NotThere("version", f"{key} {number}")
        whole = entry.scenario()
        return Shown(whole, entry.origin, 0)

    def versions(self, key: str) -> list[Version]:
        """All versions, the latest first. Raises as `get`.

        For one in a file that is the one it has, number 0.
        """
        shown = self.get(key)
        if shown.origin != "kept":
            return [Version(0, shown.loaded.version)]
        return [
            Version(each.number, each.version, each.created_at, each.by)
            for each in self._shelf.versions(key)
        ]

    def files(self, key: str) -> Mapping[str, Support]:
        """The support files of a scenario; none where there is no such scenario."""
        try:
            return self.get(key).loaded.files
        except (NotThere, InvalidInput):
            return {}

    def _kept(self, key: str, number: int | None = None) -> KeptScenario | None:
        if _KEY.fullmatch(key) is None or len(key) > 100:
            return None
        try:
            return self._shelf.get(key, number)
        except NotThere as error:
            if error.kind != "scenario":
                raise
            return None

    def _in_files(self, key: str) -> Entry | None:
        entries = self._files().entries
        return next((entry for entry in entries if entry.key == key), None)

    def _shown(self, kept: KeptScenario, warnings: Iterable[Problem] = ()) -> Shown:
        return Shown(
            loaded(self._store, kept),
            "kept",
            kept.number,
            kept.changed_at,
            kept.by,
            kept.created_at,
            tuple(warnings),
        )

    # changing

    def check(
        self, text: str, *, json: bool | None = None, key: str | None = None, notes: bool = False
    ) -> tuple[LoadedScenario | None, Sequence[Problem]]:
        """What is wrong with a scenario's text, and the scenario where nothing refuses it.

        Args:
            text: JSON or YAML.
            json: which of the two; None: its start decides.
            key: the scenario whose files are meant; None: of the scenario with the text's own key.
            notes: also what depends on judgement, for which kept runs are looked at.

        Raises:
            UsageError: looking at kept runs takes too long.
        """
        try:
            whole = self.read(text, json=json, key=key)
        except InvalidInput as error:
            return None, error.problems
        if not notes:
            return whole, [problem for problem in lint(whole) if problem.severity != "note"]
        with patient(_PATIENCE, "looking at kept runs") as searcher:
            return whole, lint(whole, KeptRuns(self._store, searcher).of(whole.scenario))

    def create(self, text: str, *, json: bool | None = None, by: str | None = None) -> Shown:
        """Keep a new scenario that comes without files.

        Raises:
            Conflict: the key is there already, be it in a file.
            InvalidInput: it is broken, or lint calls something in it an error.
        """
        return self.add(load_text(text, {}, json=json), by=by)

    def add(self, whole: LoadedScenario, *, by: str | None = None) -> Shown:
        """Keep a new scenario with its files. Raises as `create`."""
        warnings = self._check_new(whole)
        files = self._stored(whole.files)
        kept = self._shelf.create(whole.scenario, whole.version, files, by=by)
        return self._shown(kept, warnings)

    def replace(
        self,
        key: str,
        text: str,
        *,
        json: bool | None = None,
        expected: Expected,
        by: str | None = None,
    ) -> Shown:
        """Keep a scenario's next version; its files stay.

        Raises:
            NotThere: there is no such scenario.
            Conflict: it is no longer what was expected, or it is in a file.
            InvalidInput: it is broken, has another key, or lint calls something in it an error.
        """
        now = self._editable(key)
        number = expected.check(now)
        return self._put(now, load_text(text, now.loaded.files, json=json), number, by)

    def replace_with(
        self, whole: LoadedScenario, *, expected: Expected, by: str | None = None
    ) -> Shown:
        """Keep a scenario's next version with its files, in place of all it had."""
        now = self._editable(whole.scenario.key)
        return self._put(now, whole, expected.check(now), by)

    def edit(self, key: str, change: Change, *, expected: Expected, by: str | None = None) -> Shown:
        """Keep what a change makes of a scenario. Raises as `replace`, and what `change` raises."""
        now = self._editable(key)
        number = expected.check(now)
        made = Document(change(as_data(now.loaded.scenario)))
        return self._put(now, load_data(made, now.loaded.files), number, by)

    def delete(self, key: str, *, expected: Expected) -> None:
        """Remove a scenario with all its versions. Raises NotThere, Conflict."""
        now = self._editable(key)
        self._shelf.delete(key, expected=expected.check(now))

    def put_file(
        self, key: str, source: str, content: bytes, *, expected: Expected, by: str | None = None
    ) -> Shown:
        """Keep a file with a scenario, in place of one of the same path.

        Raises:
            NotThere, Conflict: as `replace`.
            InvalidInput: no file can have such a path, or there are too many.
        """
        now = self._editable(key)
        number = expected.check(now)
        check_source(source)
        files = {**now.loaded.files, source: NewFile(source, content)}
        return self._put(now, _with(now.loaded, files), number, by)

    def remove_file(
        self, key: str, source: str, *, expected: Expected, by: str | None = None
    ) -> Shown:
        """Keep a file with a scenario no longer.

        Raises:
            NotThere: there is no such scenario or file.
            Conflict: as `replace`, or the scenario names the file.
        """
        now = self._editable(key)
        number = expected.check(now)
        if source not in now.loaded.files:
            raise NotThere("file", source)
        if any(file.source == source for file in now.loaded.scenario.files):
            raise NotEditable(
                f"the scenario puts {source!r} on hosts", hint="take it out of `files` first"
            )
        files = {name: file for name, file in now.loaded.files.items() if name != source}
        return self._put(now, _with(now.loaded, files), number, by)

    def read(
        self, text: str, *, json: bool | None = None, key: str | None = None
    ) -> LoadedScenario:
        """The scenario in a text, with the files that the scenario of its key has.

        Args:
            text: as in `check`.
            json: as in `check`.
            key: as in `check`.

        Raises:
            InvalidInput: it is broken.
        """
        document = load_text(text, None, json=json).document
        data = document.data
        own = data.get("key") if isinstance(data, dict) else None
        name = key if key is not None else own
        files = self.files(name) if isinstance(name, str) else {}
        return load_data(document, files)

    def with_rules(self, key: str, rules: object) -> LoadedScenario:
        """A scenario with other rules, which are not kept.

        Raises:
            NotThere: there is no such scenario.
            InvalidInput: the rules are broken, or it is.
        """
        whole = self.get(key).loaded
        data = {**as_data(whole.scenario), "validation": rules}
        return load_data(Document(data), whole.files)

    def read_data(self, data: dict[str, Any]) -> LoadedScenario:
        """As `read`, of a scenario that is plain data already; nobody looks for other files."""
        key = data.get("key")
        files = self.files(key) if isinstance(key, str) else {}
        return load_data(Document(data), files or None)

    def _editable(self, key: str) -> Shown:
        kept = self._kept(key)
        if kept is not None:
            return self._shown(kept)
        entry = self._in_files(key)
        if entry is None:
            raise NotThere("scenario", key)
        raise NotEditable(
            f"scenario {key!r} is in a file ({entry.origin}), which is only read here",
            hint="edit the file, or create a copy under another key",
        )

    def _check_new(self, whole: LoadedScenario) -> list[Problem]:
        key = whole.scenario.key
        if key in RESERVED:
            raise _refused(whole, "key", f"cannot be {key!r}, which is a name of the API")
        warnings = _warnings(whole)
        there = {entry.key.casefold() for entry in self._files().entries if entry.key}
        if key.casefold() in there:
            raise Conflict(
                f"scenario {key!r} is there already", hint="replace it, or choose another key"
            )
        return warnings

    def _put(self, now: Shown, whole: LoadedScenario, number: int | None, by: str | None) -> Shown:
        if whole.scenario.key != now.key:
            raise _refused(
                whole,
                "key",
                f"must stay {now.key!r}; to rename it, create it under the new key and delete"
                " the old one",
            )
        warnings = _warnings(whole)
        files = self._stored(whole.files)
        kept = self._shelf.replace(
            now.key, whole.scenario, whole.version, files, by=by, expected=number
        )
        return self._shown(kept, warnings)

    def _stored(self, files: Mapping[str, Support]) -> list[StoredFile]:
        """The files as the store has them; what it does not hold yet is put there."""
        check_sizes(files)
        stored = []
        for source, file in sorted(files.items()):
            check_source(source)
            self._store.put_file(file.read())
            stored.append(StoredFile(source=source, digest=file.digest, size=file.size))
        return stored


def _with(whole: LoadedScenario, files: Mapping[str, Support]) -> LoadedScenario:
    return LoadedScenario(whole.scenario, None, None, whole.document, files)


def _warnings(whole: LoadedScenario) -> list[Problem]:
    """What lint warns of. Raises InvalidInput for what it calls an error."""
    found = lint(whole)
    errors = [problem for problem in found if problem.severity == "error"]
    if errors:
        raise InvalidInput("the scenario is refused", errors)
    return [problem for problem in found if problem.severity == "warning"]


def _refused(whole: LoadedScenario, path: str, message: str) -> InvalidInput:
    problem = Problem(path, message, code=REFUSED)
    placed = whole.document.at(problem, whole.document.place((path,)))
    return InvalidInput("the scenario is refused", [placed])
