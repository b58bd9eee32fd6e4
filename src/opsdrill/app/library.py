"""The library: the scenarios of a place by their keys, wherever they are, and edits of those in
the store.

What is in packs and folders is only read here: whoever wants to edit it copies it under a key of
its own. A version is the digest of a scenario with its support files; for one in the store these
are all files that are kept with it. What lint calls an error cannot be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from opsdrill.app.collection import Collection
from opsdrill.app.editing import Expected, NotEditable, Shown, Version
from opsdrill.app.library_rows import Row, RowPage
from opsdrill.app.scenario_files import NewFile, check_sizes, check_source
from opsdrill.errors import Conflict, InvalidInput, NotThere, Problem
from opsdrill.model.run import StoredFile
from opsdrill.scenarios.document import Document
from opsdrill.scenarios.files import Support
from opsdrill.scenarios.lint import lint
from opsdrill.scenarios.load import REFUSED, LoadedScenario, load_data, load_text
from opsdrill.scenarios.text import as_data

__all__ = [
    "Change", "Expected", "Library", "NotEditable", "Row", "RowPage", "Shown", "Version",
]  # fmt: skip

RESERVED = frozenset({"new", "schema"})
"""Keys that a scenario of the store cannot have: API and pages have something else under them."""

Change = Callable[[dict[str, object]], object]
"""From a scenario as plain data to what it is to be."""


class Library(Collection):
    """The scenarios of one place, and edits of those in its store."""

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
            raise _refused(
                whole, "key", f"cannot be {key!r}, which is a name of the API and the pages"
            )
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
