"""Patches as agents write them, `*** Begin Patch` and so on: which files they change, and how."""

from __future__ import annotations

import re

from opsdrill.model.job import ToolKind

_FILE = re.compile(r"\*\*\* (Add File|Update File|Delete File|Move to): (.+)")


def files_of(patch: str) -> list[tuple[ToolKind, dict[str, object]]]:
    """What each file of a patch gets: the kind of call that would do it, and its arguments.

    A new file is written, any other is updated; one that is moved is updated under its old name
    and written under its new one. Empty where the text is no patch.
    """
    files: list[tuple[str, str, list[str]]] = []
    lines: list[str] = []
    for line in patch.splitlines():
        head = _FILE.fullmatch(line.rstrip())
        if head is None:
            if not line.startswith(("*** Begin Patch", "*** End Patch")):
                lines.append(line)
            continue
        change, path = head[1], head[2].strip()
        if change != "Move to":
            lines = []
        files.append((change, path, lines))
    return [_call(change, path, "\n".join(lines)) for change, path, lines in files]


def _call(change: str, path: str, patch: str) -> tuple[ToolKind, dict[str, object]]:
    kind: ToolKind = "write_file" if change in ("Add File", "Move to") else "update_file"
    return kind, {"path": path, "change": change.lower(), "patch": patch}
