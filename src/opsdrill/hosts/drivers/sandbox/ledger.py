"""How much memory the files of all hosts on this machine may take, over all OpsDrill processes.

Each process keeps one file in a shared folder, locked as long as it lives, with the bytes that its
hosts may take together. A file that nobody holds the lock of belongs to nobody any more.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_AGAIN_SECONDS = 0.2
_BUSY = "another process is counting"
_BUSY_SECONDS = 0.005
_SUFFIX = ".bytes"


class TooBig(Exception):
    """It could not be had even with no other host alive; the message says the numbers."""


class Ledger:
    """This process's share.

    Args:
        folder: shared by all OpsDrill processes that should know of each other.
        free: tells how many bytes of memory are free.
    """

    def __init__(self, folder: Path, free: Callable[[], int] | None = None) -> None:
        self._folder = folder
        self._free = free or free_memory
        self._file: int | None = None
        self._path = folder
        self._taken: dict[str, int] = {}

    async def take(self, run: str, size: int, waiting: Callable[[str], None]) -> None:
        """Take `size` bytes for a run, waiting until all hosts together leave half the memory.

        Raises:
            TooBig: waiting cannot help.
        """
        told = False
        while (missing := self._try(run, size)) is not None:
            if missing is _BUSY:
                await asyncio.sleep(_BUSY_SECONDS)
                continue
            if not told:
                waiting(f"waiting for memory: {missing}")
                told = True
            await asyncio.sleep(_AGAIN_SECONDS)

    def give_back(self, run: str) -> None:
        """The hosts of the run are gone. Repeatable."""
        if self._taken.pop(run, None) is not None:
            self._write()

    def reap(self) -> list[str]:
        """Remove the files of processes that are no more; says which."""
        found: list[str] = []
        if not os.access(self._folder, os.W_OK):
            return found
        with self._counting() as counting:
            # Somebody else is counting: a file without a lock may be his, just made. Next time.
            for path, size in self._others() if counting else ():
                if size is None:
                    path.unlink(missing_ok=True)
                    found.append(
                        f"removed the memory share of a process that is no more ({path.stem})"
                    )
        return found

    def close(self) -> None:
        """Give everything back. Repeatable."""
        if self._file is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = None
        self._taken.clear()

    def _try(self, run: str, size: int) -> str | None:
        """Take it, or say what is missing."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._counting() as counting:
            if not counting:
                return _BUSY
            others = sum(share or 0 for _, share in self._others())
            taken = others + sum(self._taken.values())
            most = self._free() // 2
            if taken + size <= most:
                self._taken[run] = size
                self._write()
                return None
        numbers = f"{_mib(size)} MiB wanted, {_mib(taken)} MiB taken, {_mib(most)} MiB to share"
        if taken == 0:
            raise TooBig(numbers)
        return numbers

    @contextmanager
    def _counting(self) -> Iterator[bool]:
        """Be the only process that counts; False when another one does at the moment."""
        with (self._folder / "lock").open("ab") as lock:
            # Held for the moment of counting only; waiting for it would hold up everything else.
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    def _others(self) -> list[tuple[Path, int | None]]:
        """The other processes' files with what they take; None for one that nobody holds."""
        found: list[tuple[Path, int | None]] = []
        for path in sorted(self._folder.glob(f"*{_SUFFIX}")):
            if path == self._path:
                continue
            try:
                with path.open("rb") as share:
                    text = share.read(32)
                    found.append((path, None if _unheld(share.fileno()) else int(text or b"0")))
            except (FileNotFoundError, ValueError):
                continue
        return found

    def _write(self) -> None:
        if self._file is None:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self._path = self._folder / f"{os.getpid()}-{os.urandom(4).hex()}{_SUFFIX}"
            self._file = os.open(self._path, flags, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX)
        # One write of a fixed width: a reader sees the old number or the new one.
        os.pwrite(self._file, b"%020d" % sum(self._taken.values()), 0)


def free_memory() -> int:
    """Bytes that could be used without swapping: `MemAvailable` of proc(5)."""
    with Path("/proc/meminfo").open(encoding="ascii") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 0


def _unheld(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _mib(size: int) -> int:
    return -(-size // (1 << 20))
