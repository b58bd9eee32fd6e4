"""What a program is to have where it works. Plain values, sent to the process that makes it so."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

SIZE = 1 << 30
"""Bytes of all files that it can write, where it is isolated; they lie in memory."""
PROCESSES = 4096
"""Processes that it can have at the same time."""


@dataclass(frozen=True, slots=True)
class Room:
    """What a program is to have. Paths are as the program sees them, and absolute.

    Args:
        argv: the program, by its path, and its arguments.
        environment: all of its environment.
        home: its home folder, which holds nothing but what `files` puts there.
        work: where it starts: an empty folder.
        own: a folder for what it is given beside that; it can read it and not write it.
        user: its name.
        uid, gid: its numbers; those of this process, unless this one is root.
        stdin: the file that it gets as standard input.
        files: their content by path; readable by the program only.
        programs: executables, their content by path.
        shown: files and folders of this machine that it can read.
        hidden: files and folders of this machine that it cannot even where they lie in a shown one.
        transcripts: patterns of paths; what matches is kept.
        isolated: in namespaces of its own; False: in folders of this machine, which are made.
        size: bytes of all files that it can write, where it is isolated.
    """

    argv: tuple[str, ...]
    environment: dict[str, str]
    home: str
    work: str
    own: str
    user: str
    uid: int
    gid: int
    stdin: str
    files: dict[str, str] = field(default_factory=dict)
    programs: dict[str, str] = field(default_factory=dict)
    shown: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    transcripts: tuple[str, ...] = ()
    isolated: bool = True
    size: int = SIZE

    def to_json(self) -> bytes:
        """One line."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_json(cls, line: bytes) -> Room:
        given = json.loads(line)
        for name in ("argv", "shown", "hidden", "transcripts"):
            given[name] = tuple(given[name])
        return cls(**given)
