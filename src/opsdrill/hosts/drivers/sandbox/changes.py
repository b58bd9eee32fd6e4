"""Two snapshots of a host's files -> what changed between them. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from opsdrill.model.host import ChangedFile

Change = Literal["added", "changed", "removed"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One path of a snapshot; see `forkserver.files.snapshot` for what the fields mean."""

    kind: str
    inode: int
    changed_ns: int
    size: int
    mode: int
    user: int
    group: int
    lies_over: bool


Files = Mapping[str, Entry]


def parse(snapshot: bytes) -> Files:
    """The files that a snapshot lists, by path."""
    found: dict[str, Entry] = {}
    for line in snapshot.splitlines():
        path, *fields = json.loads(line)
        found[path] = Entry(*fields)
    return found


def compare(before: Files, after: Files) -> tuple[ChangedFile, ...]:
    """The paths that differ, sorted.

    A folder counts where it came, went, or got another mode or owner; not for what is in it.
    """
    found = []
    for path in sorted(before.keys() | after.keys()):
        then, now = before.get(path), after.get(path)
        change = _came(now) if then is None and now is not None else _differs(then, now)
        if change is not None:
            size = now.size if now is not None and now.kind == "file" else None
            found.append(ChangedFile(path=path, change=change, size=size))
    return tuple(found)


def _came(now: Entry) -> Change | None:
    if now.kind == "gone":
        return "removed"
    if not now.lies_over:
        return "added"
    # A folder of `/usr` is copied as soon as anything in it changes.
    return None if now.kind == "folder" else "changed"


def _differs(then: Entry | None, now: Entry | None) -> Change | None:
    if then is None or (then.kind == "gone" and (now is None or now.kind == "gone")):
        return None
    if now is None:
        return "removed"
    if (then.kind == "gone") != (now.kind == "gone"):
        return "removed" if now.kind == "gone" else "added"
    if then.kind == now.kind == "folder":
        same = (then.mode, then.user, then.group) == (now.mode, now.user, now.group)
    else:
        same = then == now
    return None if same else "changed"
