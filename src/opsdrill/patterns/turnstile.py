"""Who may search at the same time: many among others, or one alone, on this machine.

Two lock files of this user. To go in, everybody passes the gate; whoever wants to be alone keeps
it until the room is empty, so that a steady stream of others cannot hold him off.
"""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PAUSE = 0.01


class Turnstile:
    """Locks that are a courtesy: without them searches are exact too, only less sure of time.

    Args:
        patience: wall seconds to wait; then this turnstile gives up for good, so that whoever
            holds the locks for ever cannot stop us.
    """

    def __init__(self, patience: float, folder: Path | None = None) -> None:
        self._patience = patience
        self._folder = folder
        self._open = True

    @contextmanager
    def among_others(self) -> Iterator[None]:
        """While inside, nobody is alone."""
        with self._inside(fcntl.LOCK_SH):
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While inside, nobody else is."""
        with self._inside(fcntl.LOCK_EX):
            yield

    @contextmanager
    def _inside(self, kind: int) -> Iterator[None]:
        files = self._files() if self._open else []
        try:
            if files:
                gate, room = files
                deadline = time.monotonic() + self._patience
                self._open = self._lock(gate, fcntl.LOCK_EX, deadline) and self._lock(
                    room, kind, deadline
                )
                if kind == fcntl.LOCK_SH or not self._open:
                    fcntl.flock(gate, fcntl.LOCK_UN)
            yield
        finally:
            for descriptor in files:
                os.close(descriptor)

    def _lock(self, descriptor: int, kind: int, deadline: float) -> bool:
        while True:
            try:
                fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    return False
                time.sleep(_PAUSE)
            except OSError:
                return False
            else:
                return True

    def _files(self) -> list[int]:
        """The gate and the room, opened; empty where this user has no place for them."""
        opened: list[int] = []
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            folder = _own_folder(self._folder)
            for name in ("search-gate", "search-room"):
                opened.append(os.open(folder / name, flags, 0o600))
        except OSError:
            self._open = False
            for descriptor in opened:
                os.close(descriptor)
            return []
        return opened


def _own_folder(folder: Path | None) -> Path:
    """A folder that belongs to this user and nobody else can write to.

    Raises:
        OSError: there is none.
    """
    if folder is None:
        folder = Path(tempfile.gettempdir()) / f"opsdrill-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise PermissionError(f"{folder} is not this user's own folder")
    return folder
