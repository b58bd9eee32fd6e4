"""Files of a host are written, read and listed; links lead where they lead inside the host."""

# ruff: noqa: PTH102, PTH112, PTH114

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator

from opsdrill.hosts.drivers.sandbox.forkserver import accounts, tree
from opsdrill.hosts.drivers.sandbox.messages import PutFile

_CHUNK = 1 << 20
MOST_ENTRIES = 200_000
"""Files that a snapshot lists; a host with more has none that is worth the memory."""
MOST_BYTES = 32 << 20
"""Bytes that the list may have: 32,000 files with the longest of paths would take 800 MiB."""
_NOT_LISTED = ("dev", "proc", "sys")


def write(request: PutFile, content: int) -> None:
    """Write a file of the host that this process is in.

    Raises:
        OSError: it cannot be written.
        NoAccount: its owner does not exist there.
    """
    owner = None if request.owner is None else accounts.owner(request.owner)
    _make_parents(request.path)
    existed = os.path.lexists(request.path)
    # Not blocking: a named pipe that nobody reads must not hold us.
    flags = os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    fd = os.open(request.path, flags, 0o644)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        os.ftruncate(fd, 0)
        _copy(content, fd)
        if owner is not None:
            os.fchown(fd, *owner)
        if request.mode is not None:
            os.fchmod(fd, request.mode)
        elif not existed:
            os.fchmod(fd, 0o644)
    finally:
        os.close(fd)


def read(path: str, limit: int, target: int) -> None:
    """Copy the first `limit` bytes of a file into `target`.

    Raises:
        FileNotFoundError: there is none.
        OSError: it cannot be read, or is no regular file.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        while limit > 0 and (chunk := os.read(fd, min(_CHUNK, limit))):
            os.write(target, chunk)
            limit -= len(chunk)
    finally:
        os.close(fd)


def snapshot(files: int, target: int) -> None:
    """List all files of a host into `target`, one JSON list a line. Changes this process's root.

    A line is: path, kind (`file`, `folder`, `gone`), inode, change time in ns, size, mode, user,
    group, and whether this machine's `/usr` has such a path. Nothing of the host is followed or
    opened.

    Args:
        files: the host's file system without anything mounted over it.
    """
    machine = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    # A link that takes a folder's place just now must not lead out of the host.
    os.fchdir(files)
    os.chroot(".")
    count = size = 0
    with os.fdopen(target, "w", encoding="utf-8", closefd=False) as lines:
        for entry in _entries(machine):
            line = json.dumps(entry) + "\n"
            count += 1
            size += len(line)
            if count > MOST_ENTRIES or size > MOST_BYTES:
                raise OSError(errno.E2BIG, "it has more files than can be listed")
            lines.write(line)


Entry = list[str | int | bool]


def _entries(machine: int) -> Iterator[Entry]:
    yield from _walk("root", "", None)
    for top in tree.layered(machine):
        if _is_folder(f"{top}.upper"):
            yield from _walk(f"{top}.upper", f"/{top}", machine)
        if _is_folder(f"{top}.local"):
            yield from _walk(f"{top}.local", f"/{top}/local", None)


def _walk(start: str, shown: str, machine: int | None) -> Iterator[Entry]:
    """Everything under `start`, which the host sees as `shown`; `machine` is what it lies over."""
    waiting = [(start, shown)]
    while waiting:
        path, name = waiting.pop()
        try:
            here = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG):
                continue  # removed meanwhile, or deeper than any path can tell
            raise
        try:
            with os.scandir(here) as found:
                for entry in found:
                    if path == "root" and entry.name in _NOT_LISTED:
                        continue
                    facts = _facts(entry)
                    if facts is None:
                        continue
                    inside = f"{name}/{entry.name}"
                    yield [_readable(inside), *facts, _is_there(machine, inside)]
                    if facts[0] == "folder":
                        waiting.append((f"{path}/{entry.name}", inside))
        finally:
            os.close(here)


def _is_there(machine: int | None, path: str) -> bool:
    if machine is None:
        return False
    try:
        os.stat(path[1:], dir_fd=machine, follow_symlinks=False)
    except OSError:
        return False
    return True


def _facts(entry: os.DirEntry[str]) -> Entry | None:
    try:
        what = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    kind = "folder" if stat.S_ISDIR(what.st_mode) else "file"
    if stat.S_ISCHR(what.st_mode) and what.st_rdev == 0:
        kind = "gone"  # how an overlay notes a removed file
    size = what.st_size if stat.S_ISREG(what.st_mode) else 0
    return [kind, what.st_ino, what.st_ctime_ns, size, what.st_mode, what.st_uid, what.st_gid]


def _readable(path: str) -> str:
    return path.encode(errors="surrogateescape").decode(errors="replace")


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _make_parents(path: str) -> None:
    parts = path.split("/")[1:-1]
    for count in range(1, len(parts) + 1):
        folder = "/" + "/".join(parts[:count])
        if not os.path.isdir(folder):
            os.mkdir(folder, 0o755)


def _copy(source: int, target: int) -> None:
    offset = 0
    while chunk := os.pread(source, _CHUNK, offset):
        view = memoryview(chunk)
        while view:
            view = view[os.write(target, view) :]
        offset += len(chunk)
