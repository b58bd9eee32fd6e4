"""What changed on a host: the engine's list of files that are not the image's, made exact.

The list alone does not tell what setup had changed from what was changed later, nor a folder that
got another mode from one in which something came. So the host's own `find` and `stat` are asked
for what each file is like, at both times. The list comes first: what it does not have is unchanged,
whatever the host says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from opsdrill.hosts.drivers.container.engine import Kind
from opsdrill.model.host import ChangedFile

_FOLDER, _FILE = 0o040000, 0o100000
_TYPE = 0o170000


@dataclass(frozen=True, slots=True)
class Entry:
    """What stat(1) says of one path; `rest` is all that tells one state from another."""

    mode: int
    size: int
    owner: str
    rest: str

    @property
    def folder(self) -> bool:
        return self.mode & _TYPE == _FOLDER


@dataclass(frozen=True, slots=True)
class Files:
    """A host's files at one time.

    Attributes:
        listed: paths that differ from the image.
        entries: every path.
    """

    listed: frozenset[str]
    entries: Mapping[str, Entry]


def stat_text(between: str) -> str:
    """Text for `ask_line` that describes every file; `between` stands before each."""
    shape = f"{between}%f|%s|%u:%g|%i|%z|%n"
    return f"exec find / -xdev -exec stat -c '{shape}' {{}} +"


def parse_entries(printed: str, between: str) -> dict[str, Entry]:
    """The answer to `stat_text`."""
    found = {}
    for part in printed.split(between)[1:]:
        fields = part.removesuffix("\n").split("|", 5)
        if len(fields) != 6 or not fields[1].isdecimal():
            continue
        try:
            mode = int(fields[0], 16)
        except ValueError:
            continue
        found[fields[5]] = Entry(mode, int(fields[1]), fields[2], "|".join(fields[:5]))
    return found


def diff_arguments(kind: Kind, container: str) -> tuple[str, ...]:
    """The engine's arguments that list the files of a container that are not its image's."""
    exact = ("--format=json",) if kind == "podman" else ()
    return ("diff", *exact, container)


def parse_diff(kind: Kind, printed: str) -> frozenset[str]:
    """The paths in the engine's answer.

    Raises:
        ValueError: it is no such answer.
    """
    if kind == "podman":
        answer = json.loads(printed)
        if not isinstance(answer, dict):
            raise ValueError("no list of changes")
        lists = [answer.get(word) or [] for word in ("added", "changed", "deleted")]
        return frozenset(path for paths in lists for path in paths if isinstance(path, str))
    found: list[str] = []
    for line in printed.splitlines():
        if line[:3] in ("A /", "C /", "D /"):
            found.append(line[2:])
        elif found:
            # The name of a file has a line break.
            found[-1] += f"\n{line}"
    return frozenset(found)


def compare(before: Files, after: Files) -> tuple[ChangedFile, ...]:
    """The paths that differ, sorted.

    A folder counts where it came, went, or got another mode or owner; not for what is in it.
    """
    found = []
    for path in sorted(before.listed | after.listed):
        then, now = before.entries.get(path), after.entries.get(path)
        change = _change(then, now, fresh=path not in before.listed)
        if change is not None:
            size = now.size if now is not None and now.mode & _TYPE == _FILE else None
            found.append(ChangedFile(path=path, change=change, size=size))
    return tuple(found)


def _change(
    then: Entry | None, now: Entry | None, *, fresh: bool
) -> Literal["added", "changed", "removed"] | None:
    if then is None:
        return None if now is None else "added"
    if now is None:
        return "removed"
    if then.folder and now.folder:
        return "changed" if (then.mode, then.owner) != (now.mode, now.owner) else None
    # What the engine lists for the first time changed, even if the host says otherwise.
    return "changed" if fresh or then.rest != now.rest else None
