"""The scenarios of a place by their keys, wherever they are: read, listed, checked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from opsdrill.app import scenarios
from opsdrill.app.editing import Shown, Version
from opsdrill.app.library_rows import Row, RowPage, row_of_file, row_of_shelf, words_of
from opsdrill.app.patience import patient
from opsdrill.app.recorded import KeptRuns
from opsdrill.app.shelf import kept_scenarios, loaded
from opsdrill.app.wiring import Place
from opsdrill.errors import InvalidInput, NotThere, Problem
from opsdrill.model.fields import KEY
from opsdrill.scenarios.catalogue import Catalogue, Entry, Origin, Readings
from opsdrill.scenarios.document import Document
from opsdrill.scenarios.files import Support
from opsdrill.scenarios.lint import lint
from opsdrill.scenarios.load import LoadedScenario, load_data, load_text
from opsdrill.scenarios.text import as_data
from opsdrill.store.cursor import check_limit, decode_key, encode_key
from opsdrill.store.shelf import KeptScenario, Shelf
from opsdrill.store.store import Store

_KEY = re.compile(KEY)
_PATIENCE = 20.0
"""Seconds that a caller waits for what kept runs show."""


class Collection:
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
