"""What is kept of a program's files: a stream of plain files, read by who masks and stores them."""

# ruff: noqa: PTH113, PTH114, PTH118, PTH207

from __future__ import annotations

import glob
import os
import stat
import tarfile
from collections.abc import Iterator

from opsdrill.agents.isolation.room import Room

TRANSCRIPTS = 256 << 20
"""Bytes of transcripts that are kept."""
WORK = 64 << 20
"""Bytes of the working folder that are kept."""
FILES = 5000
LEFT_OUT = "left-out"
"""The name of the last entry: how many files were left out, as text."""
REPORTS_LEFT_OUT = "transcripts-left-out"
"""The name of the entry before it, where transcripts are among them: how many, likewise."""


def send_kept(room: Room, fd: int) -> None:
    """Write the transcripts, then the working folder, as an archive; nothing else runs by now."""
    left_out = 0
    with os.fdopen(fd, "wb") as stream, tarfile.open(fileobj=stream, mode="w|") as archive:
        bounds = ((_transcripts(room), TRANSCRIPTS), (_below(room.work, "work"), WORK))
        for files, limit in bounds:
            left, count = limit, FILES
            for path, name in files:
                size = _send(archive, path, name, left) if count else None
                if size is None:
                    left_out += 1
                else:
                    left, count = left - size, count - 1
            if left_out and limit == TRANSCRIPTS:
                archive.addfile(tarfile.TarInfo(f"{REPORTS_LEFT_OUT}/{left_out}"))
        archive.addfile(tarfile.TarInfo(f"{LEFT_OUT}/{left_out}"))


def _send(archive: tarfile.TarFile, path: str, name: str, left: int) -> int | None:
    """Add one file; its size, or None for one that is left out."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as content:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size > left:
            return None
        entry = tarfile.TarInfo(name)
        entry.size = found.st_size
        archive.addfile(entry, content)
        return found.st_size


def _transcripts(room: Room) -> Iterator[tuple[str, str]]:
    """The newest first: the last is the one of the whole job, where there are several."""
    found = {
        path
        for pattern in room.transcripts
        for path in glob.iglob(pattern, recursive=True, include_hidden=True)
        if os.path.isfile(path) and not os.path.islink(path)
    }
    for path in sorted(found, key=lambda path: -os.lstat(path).st_mtime_ns):
        for root, name in ((room.work, "work"), (room.home, "home")):
            if path.startswith(root + "/"):
                yield path, f"transcripts/{name}/{os.path.relpath(path, root)}"
                break


def _below(root: str, name: str) -> Iterator[tuple[str, str]]:
    for folder, _, files in os.walk(root):
        for file in sorted(files):
            path = os.path.join(folder, file)
            yield path, f"{name}/{os.path.relpath(path, root)}"
