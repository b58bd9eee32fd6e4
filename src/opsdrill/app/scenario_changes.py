"""What changed between two versions of a scenario: key by key, and rule by rule."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from opsdrill.scenarios.load import LoadedScenario
from opsdrill.scenarios.text import as_data

Kind = Literal["added", "removed", "changed", "moved"]

_ONE = {
    "validation": "rule",
    "setup": "setup step",
    "ready": "ready check",
    "replies": "reply",
    "reference": "reference step",
    "restore": "restore step",
    "files": "support file",
    "hosts": "host",
}
"""What an item of a list is called; any other list is told whole."""
_FROM = {"validation": 0}
"""What the first of a list is counted as, as everywhere else; of any other: 1."""
_NAMES = ("label", "name", "from", "run", "when")
"""By which an item is known, the first that it has."""


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A value that is another; None where there was, or is, none."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that is otherwise.

    Args:
        part: the key of the scenario, such as `validation`.
        title: what it is, for people.
        kind: what became of it.
        fields: its values that are others; all of one that was added or removed.
    """

    part: str
    title: str
    kind: Kind
    fields: tuple[FieldChange, ...] = ()


def version_changes(before: LoadedScenario, after: LoadedScenario) -> list[Change]:
    """What is otherwise in `after`, its support files' contents among that."""
    found = data_changes(as_data(before.scenario), as_data(after.scenario))
    old = {name: file.digest for name, file in before.files.items()}
    new = {name: file.digest for name, file in after.files.items()}
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) == new.get(name):
            continue
        kind: Kind = "added" if name not in old else "removed" if name not in new else "changed"
        digests = FieldChange("sha256", old.get(name), new.get(name))
        found.append(Change("files", f"content of {name}", kind, (digests,)))
    return found


def data_changes(before: Mapping[str, object], after: Mapping[str, object]) -> list[Change]:
    """As `version_changes`, of plain data with its defaults, such as `as_data` gives."""
    found: list[Change] = []
    for key in [*before, *(key for key in after if key not in before)]:
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        if key in _ONE and isinstance(old or [], list) and isinstance(new or [], list):
            found += _list_changes(key, _listed(old), _listed(new))
        elif isinstance(old, dict) and isinstance(new, dict):
            found.append(Change(key, key, "changed", _fields(old, new)))
        else:
            values = FieldChange(key, _told(old), _told(new))
            found.append(Change(key, key, "changed", (values,)))
    return found


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []


def _list_changes(key: str, old: Sequence[object], new: Sequence[object]) -> list[Change]:
    pairs = _pairs(old, new)
    partners = dict(pairs)
    gone = [place for place in range(len(old)) if place not in partners]
    found = [_whole(key, place, old[place], "removed") for place in gone]
    back = {after: before for before, after in pairs}
    kept = [back[place] for place in range(len(new)) if place in back]
    steady = _steady(kept)
    for place, item in enumerate(new):
        if place not in back:
            found.append(_whole(key, place, item, "added"))
            continue
        before = old[back[place]]
        title = _title(key, place, item)
        if before != item:
            found.append(Change(key, title, "changed", _fields(_object(before), _object(item))))
        if back[place] not in steady:
            where = FieldChange("place", _number(key, back[place]), _number(key, place))
            found.append(Change(key, title, "moved", (where,)))
    return found


def _pairs(old: Sequence[object], new: Sequence[object]) -> list[tuple[int, int]]:
    """Which item became which: the same one, else one of the same name, else at its place."""
    left_old, left_new = list(range(len(old))), list(range(len(new)))
    found: list[tuple[int, int]] = []
    for same in (_written, _name):
        by_word: dict[str, list[int]] = {}
        for after in left_new:
            by_word.setdefault(same(new[after]), []).append(after)
        for before in list(left_old):
            known = by_word.get(same(old[before]))
            if known:
                after = known.pop(0)
                found.append((before, after))
                left_old.remove(before)
                left_new.remove(after)
    for before in list(left_old):
        if before in left_new and _kind(old[before]) == _kind(new[before]):
            found.append((before, before))
            left_new.remove(before)
    return sorted(found)


def _steady(kept: Sequence[int]) -> set[int]:
    """Those that need not have moved for the order to be what it is."""
    matcher = SequenceMatcher(None, sorted(kept), kept, autojunk=False)
    return {kept[block.b + i] for block in matcher.get_matching_blocks() for i in range(block.size)}


def _written(item: object) -> str:
    return json.dumps(item, sort_keys=True)


def _name(item: object) -> str:
    fields = _object(item)
    name = next((fields[name] for name in _NAMES if name in fields), None)
    return json.dumps(name) if name is not None else _written(item)


def _kind(item: object) -> object:
    return _object(item).get("validator")


def _object(item: object) -> Mapping[str, object]:
    return item if isinstance(item, dict) else {"value": item}


def _title(key: str, place: int, item: object) -> str:
    fields = _object(item)
    name = next((str(fields[name]) for name in _NAMES if name in fields), "")
    line = name.strip().partition("\n")[0]
    called = f"{_ONE[key]} {_number(key, place)}"
    return f"{called}: {line[:200]}" if line else called


def _number(key: str, place: int) -> str:
    return str(place + _FROM.get(key, 1))


def _whole(key: str, place: int, item: object, kind: Kind) -> Change:
    there = kind == "added"
    fields = tuple(
        FieldChange(name, None if there else _told(value), _told(value) if there else None)
        for name, value in _object(item).items()
    )
    return Change(key, _title(key, place, item), kind, fields)


def _fields(old: Mapping[str, object], new: Mapping[str, object]) -> tuple[FieldChange, ...]:
    names = [*old, *(name for name in new if name not in old)]
    return tuple(
        FieldChange(name, _told(old.get(name)), _told(new.get(name)))
        for name in names
        if old.get(name) != new.get(name)
    )


def _told(value: object) -> str | None:
    if value is None:
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
