"""Scenarios: the ones that a selection means, listed, shown, and made anew; and the schemas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from opsdrill.app import documents
from opsdrill.app.wiring import Place
from opsdrill.errors import Problem, UnknownName, UsageError
from opsdrill.scenarios.catalogue import PACKS, Catalogue, Entry, Readings, is_path
from opsdrill.scenarios.load import LoadedScenario
from opsdrill.scenarios.template import write_template
from opsdrill.scenarios.text import as_json as json_text

HERE = "scenarios"
"""The folder of the working folder that is looked through when the settings name none."""
SCHEMAS = PACKS.parent / "schemas"

Loaded: TypeAlias = LoadedScenario
"""A scenario with its files, wherever it is."""
Kept = Iterable[LoadedScenario]
"""The scenarios that are kept in the store."""


@dataclass(frozen=True, slots=True)
class Listed:
    """The scenarios of a listing, and what is wrong with the others."""

    scenarios: tuple[LoadedScenario, ...]
    problems: tuple[Problem, ...]


def catalogue(place: Place, kept: Kept = (), readings: Readings | None = None) -> Catalogue:
    """The packs that come along, the folders of the settings, and what is kept in the store.

    Args:
        kept: the scenarios of the store (see `opsdrill.app.shelf`).
        readings: what was read of the folders before.
    """
    own = place.settings.scenarios
    folders = [place.folder / Path(name).expanduser() for name in (own or (HERE,))]
    missing = [folder for folder in folders if own and not folder.is_dir()]
    if missing:
        raise UsageError(
            f"there is no folder {missing[0]}", hint="see `scenarios` in opsdrill.toml"
        )
    return Catalogue([PACKS, *folders], kept, readings)


def selected(place: Place, words: Sequence[str], kept: Kept = ()) -> list[LoadedScenario]:
    """The scenarios that paths, keys, `tag:NAME` and `pack:NAME` mean, each once.

    Raises:
        UsageError: the selection is empty, or there is no such path, key, tag or pack.
        InvalidInput: a selected scenario is broken.
    """
    return catalogue(place, _asked(words, kept)).select(words)


def one(place: Place, word: str, kept: Kept = ()) -> LoadedScenario:
    """The one scenario that a word means. Raises as `selected`, and for more than one."""
    found = selected(place, [word], kept)
    if len(found) != 1:
        keys = ", ".join(loaded.scenario.key for loaded in found[:10])
        raise UsageError(f"{word!r} means {len(found)} scenarios", hint=f"name one of: {keys}")
    return found[0]


def entries(place: Place, words: Sequence[str], kept: Kept = ()) -> list[Entry]:
    """As `selected`, and the broken ones with their problems; without words all of them."""
    known = catalogue(place, _asked(words, kept))
    if not words:
        return list(known.entries)
    found: dict[str, Entry] = {}
    for word in words:
        for entry in known.meant(word):
            found.setdefault(entry.place, entry)
    return list(found.values())


def _asked(words: Sequence[str], kept: Kept) -> Kept:
    """What is kept; for paths alone nobody needs to open a store."""
    return () if words and all(map(is_path, words)) else kept


def listed(place: Place, words: Sequence[str], kept: Kept = ()) -> Listed:
    """What a listing shows: the scenarios that can run, and the problems of the others."""
    found = entries(place, words, kept)
    return Listed(
        tuple(e.loaded for e in found if e.loaded is not None and not e.problems),
        tuple(problem for e in found for problem in e.problems),
    )


def document(found: Listed, *, lines: bool) -> bytes:
    """A listing for programs."""
    rows: list[dict[str, object]] = [
        {
            "key": loaded.scenario.key,
            "title": loaded.scenario.title,
            "tags": list(loaded.scenario.tags),
            "hosts": list(loaded.scenario.host_names),
            "rules": len(loaded.scenario.validation),
            "version": loaded.version,
            "path": str(loaded.path) if loaded.path else None,
        }
        for loaded in found.scenarios
    ]
    if lines:
        return documents.lines(rows)
    problems = [str(problem) for problem in found.problems]
    return documents.document("scenarios", "scenarios", rows, problems=problems)


def as_json(loaded: LoadedScenario) -> bytes:
    """The scenario in full, every default written out; it loads again as it is."""
    return json_text(loaded.scenario).encode().rstrip()


def init(folder: Path) -> list[Path]:
    """Make a new scenario folder from the template; gives the files written.

    Raises:
        UsageError: the folder holds something already, or cannot be written.
    """
    return write_template(folder)


def schema(name: str) -> bytes:
    """The JSON Schema of a file format by name, such as `scenario` or `job`.

    Raises:
        UnknownName: there is no such schema; lists the choices.
    """
    known = {path.name.removesuffix(".schema.json"): path for path in SCHEMAS.glob("*.schema.json")}
    if name not in known:
        raise UnknownName("schema", name, known)
    return known[name].read_bytes().rstrip()
