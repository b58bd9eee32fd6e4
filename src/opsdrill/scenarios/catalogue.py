"""The catalogue: every scenario below some folders or in a store, by key, tag, pack or path.

A broken scenario is an entry too, with its problems; it hides none of the others.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from opsdrill.errors import InvalidInput, OpsDrillError, Problem, UnknownName, UsageError
from opsdrill.scenarios.document import SYNTAX, Document
from opsdrill.scenarios.load import (
    SCENARIO_FILES,
    LoadedScenario,
    load_document,
    read_document,
    scenario_file,
)

PACKS = Path(__file__).parent.parent / "packs"
"""The scenarios that ship with OpsDrill: a folder for each pack."""

KEY_TWICE = "OD005"
"""The code of a key that two scenarios of a catalogue share."""

Origin = Literal["kept", "pack", "folder"]
"""Where a scenario is: in the store, in a pack that comes along, in a folder of the settings."""

FOLDER_DEPTH = 8
ENTRY_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One scenario of a catalogue.

    Args:
        path: its file, or its folder where it is not known which file is meant; None for one that
            is kept in a store.
        key: as written, also where the scenario is broken; None where it cannot be read.
        title: likewise.
        tags: likewise.
        pack: the folder below the root that it lies in; None for one that lies at the root.
        loaded: the scenario; None when it is broken.
        problems: what is wrong with it, or with its place in the catalogue.
        origin: where it is.
    """

    path: Path | None
    key: str | None
    title: str | None
    tags: tuple[str, ...]
    pack: str | None
    loaded: LoadedScenario | None
    problems: tuple[Problem, ...] = ()
    origin: Origin = "folder"

    @property
    def place(self) -> str:
        """What no other entry has."""
        return f"kept as {self.key}" if self.path is None else str(self.path.resolve())

    def scenario(self) -> LoadedScenario:
        """The scenario, where nothing is wrong with it.

        Raises:
            InvalidInput: it is broken, or shares its key with another.
        """
        if self.loaded is None or self.problems:
            # Where it has no key, its problems name the file all the same.
            which = f"the scenario {self.key}" if self.key is not None else "the scenario"
            raise InvalidInput(f"{which} is refused", self.problems)
        return self.loaded


class Readings:
    """The entries that were read before, each good as long as none of its files changes."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[_Stamps, Entry]] = {}

    def entry(self, folder: Path, pack: str | None, origin: Origin) -> Entry:
        """The entry of a folder, read only where it is not known as it stands now."""
        known = self._known.get(folder)
        if known is not None and (known[1].pack, known[1].origin) == (pack, origin):
            stamps, entry = known
            if _stamps(folder, entry) == stamps:
                return entry
        entry = _entry(folder, pack, origin)
        if len(self._known) >= ENTRY_LIMIT:
            self._known.clear()
        self._known[folder] = _stamps(folder, entry), entry
        return entry


_Stamps = tuple[tuple[str, int, int, int], ...]


def _stamps(folder: Path, entry: Entry) -> _Stamps:
    files = [folder / name for name in SCENARIO_FILES]
    if entry.loaded is not None:
        files += [folder / source for source in entry.loaded.files]
    return tuple(_stamp(path) for path in files)


def _stamp(path: Path) -> tuple[str, int, int, int]:
    try:
        about = path.stat()
    except OSError:
        return str(path), 0, 0, 0
    return str(path), about.st_ino, about.st_mtime_ns, about.st_size


class Catalogue:
    """The scenarios below some folders, and those that are kept elsewhere.

    Args:
        roots: folders to look through, links not followed; one that is not there holds nothing.
        kept: the scenarios that are kept in a store.
        readings: what was read before.
    """

    def __init__(
        self,
        roots: Iterable[Path] = (PACKS,),
        kept: Iterable[LoadedScenario] = (),
        readings: Readings | None = None,
    ) -> None:
        found = {entry.place: entry for entry in _entries(roots, readings or Readings())}
        found.update((entry.place, entry) for entry in map(_kept, kept))
        self.entries = tuple(_unique(list(found.values())))

    @property
    def broken(self) -> tuple[Entry, ...]:
        """The entries with problems."""
        return tuple(entry for entry in self.entries if entry.problems)

    def keys(self) -> list[str]:
        """All keys, sorted."""
        return sorted({entry.key for entry in self.entries if entry.key is not None})

    def tags(self) -> list[str]:
        """All tags, sorted."""
        return sorted({tag for entry in self.entries for tag in entry.tags})

    def packs(self) -> list[str]:
        """The names of all packs, sorted."""
        return sorted({entry.pack for entry in self.entries if entry.pack is not None})

    def select(self, selection: Sequence[str]) -> list[LoadedScenario]:
        """The scenarios that some words mean, in their order, each once.

        A word is `tag:NAME`, `pack:NAME`, a key, or a path: of a scenario's folder or file, or of
        a folder with scenarios somewhere below it. What looks like a path (a slash in it, a dot
        at its start, the ending of a scenario file) is one; any other word is a key, then a path.

        Raises:
            UnknownName: no such key, tag or pack; names the closest.
            UsageError: no such path, a folder without scenarios, or an empty selection.
            InvalidInput: a selected scenario is broken or shares its key with another.
        """
        if not selection:
            raise UsageError("no scenario is selected", hint="give a path, a key or tag:NAME")
        chosen: dict[str, LoadedScenario] = {}
        for word in selection:
            for entry in self.meant(word):
                chosen.setdefault(entry.place, entry.scenario())
        return list(chosen.values())

    def meant(self, word: str) -> list[Entry]:
        """The entries that one word of a selection means, the broken ones among them.

        Raises:
            UnknownName: no such key, tag or pack; names the closest.
            UsageError: no such path, a folder without scenarios, or an empty word.
        """
        if not word.strip():
            raise UsageError("an empty word selects nothing", hint="give a path, a key or tag:NAME")
        kind, colon, name = word.partition(":")
        if colon and kind == "tag":
            entries = [entry for entry in self.entries if name in entry.tags]
            return _some("tag", name, entries, self.tags())
        if colon and kind == "pack":
            entries = [entry for entry in self.entries if entry.pack == name]
            return _some("pack", name, entries, self.packs())
        if not is_path(word):
            entries = [e for e in self.entries if (e.key or "").casefold() == word.casefold()]
            if entries or not Path(word).exists():
                return _some("scenario", word, entries, self.keys())
        return _at(Path(word))


def _some(kind: str, name: str, entries: list[Entry], known: list[str]) -> list[Entry]:
    if not entries:
        raise UnknownName(kind, name, known)
    return entries


def is_path(word: str) -> bool:
    """Whether a word of a selection can only be a path."""
    return "/" in word or word.startswith(".") or word.endswith((".yaml", ".yml", ".json"))


def _at(path: Path) -> list[Entry]:
    if not path.is_dir() or any((path / name).is_file() for name in SCENARIO_FILES):
        return [_read(scenario_file(path), None)]
    entries = Catalogue([path]).entries
    if not entries:
        scenario_file(path)  # raises and says that there is none
    return list(entries)


def _entries(roots: Iterable[Path], readings: Readings) -> Iterator[Entry]:
    for root in roots:
        origin: Origin = "pack" if root == PACKS else "folder"
        for count, folder in enumerate(_folders(root)):
            if count >= ENTRY_LIMIT:
                raise UsageError(f"{root} holds more than {ENTRY_LIMIT} scenarios")
            relative = folder.relative_to(root)
            pack = relative.parts[0] if len(relative.parts) > 1 else None
            yield readings.entry(folder, pack, origin)


def _folders(root: Path) -> Iterator[Path]:
    """The folders below `root` that hold a scenario, sorted; none is looked for inside one."""
    for place, folders, files in os.walk(root):
        if any(name in files for name in SCENARIO_FILES):
            folders.clear()
            yield Path(place)
        depth = len(Path(place).relative_to(root).parts)
        kept = sorted(name for name in folders if not name.startswith("."))
        folders[:] = kept if depth < FOLDER_DEPTH else []


def _entry(folder: Path, pack: str | None, origin: Origin) -> Entry:
    path = folder
    try:
        path = scenario_file(folder)
        return replace(_read(path, pack), origin=origin)
    except OpsDrillError as error:
        problem = Problem("", error.message, code=SYNTAX, file=str(path))
        return replace(_broken(path, None, pack, (problem,)), origin=origin)


def _kept(loaded: LoadedScenario) -> Entry:
    scenario = loaded.scenario
    return Entry(None, scenario.key, scenario.title, scenario.tags, None, loaded, origin="kept")


def _read(path: Path, pack: str | None) -> Entry:
    """The scenario in a file, broken or whole. Raises UsageError where it cannot be opened."""
    document = Document(None)
    try:
        document = read_document(path)
        loaded = load_document(path, document)
    except InvalidInput as error:
        return _broken(path, document.data, pack, error.problems)
    scenario = loaded.scenario
    return Entry(path, scenario.key, scenario.title, scenario.tags, pack, loaded)


def _broken(path: Path, data: object, pack: str | None, problems: tuple[Problem, ...]) -> Entry:
    known = data if isinstance(data, dict) else {}
    key, title, tags = known.get("key"), known.get("title"), known.get("tags")
    return Entry(
        path,
        key if isinstance(key, str) else None,
        title if isinstance(title, str) else None,
        tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else (),
        pack,
        None,
        problems,
    )


def _unique(entries: list[Entry]) -> Iterator[Entry]:
    """The entries in the order of their keys; those that share a key get a problem each."""
    by_key: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.key is not None:
            by_key.setdefault(entry.key.casefold(), []).append(entry)
    for entry in sorted(entries, key=lambda e: ((e.key or "").casefold(), e.place)):
        others = [e for e in by_key.get((entry.key or "").casefold(), []) if e is not entry]
        twice = tuple(_twice(entry, other) for other in others)
        yield replace(entry, problems=(*entry.problems, *twice)) if twice else entry


def _twice(entry: Entry, other: Entry) -> Problem:
    where = other.path or "a scenario in the store"
    problem = Problem("key", f"{entry.key!r} is the key of {where} too", code=KEY_TWICE)
    place = entry.loaded.document.place(("key",)) if entry.loaded else None
    line, column = (place.line, place.column) if place else (None, None)
    return problem.at(str(entry.path) if entry.path else None, line, column)
