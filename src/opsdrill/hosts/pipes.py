"""Our ends of a running program's pipes or of its terminal: read and written only when asked."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import termios
from collections.abc import Callable
from contextlib import suppress

_LAST_WORDS_SECONDS = 1.0
"""Seconds in which the rest must come from a terminal whose program ended."""
_TURN = 1 << 18
"""Bytes after which others get their turn, even if there is more to read or room to write."""


class Outlet:
    """The end that a program's output comes from. One reader.

    Args:
        fd: the end, which does not block; closed with this.
        terminal: it is a terminal, whose other side hangs up when its program ends.
    """

    def __init__(self, fd: int, *, terminal: bool = False) -> None:
        self._fd = fd
        self._terminal = terminal
        self._rest: int | None = None
        self._over = False
        self._at_once = 0
        self._waiter: asyncio.Future[None] | None = None

    async def read(self, size: int) -> bytes:
        """What came next, at most `size` bytes; empty at the end."""
        while not self._over:
            wanted = size if self._rest is None else min(size, self._rest)
            try:
                data = os.read(self._fd, wanted) if wanted else b""
            except BlockingIOError:
                # At its end nothing more is waited for: others may have it open, or took it.
                if self._rest is not None or not await self._more():
                    break
                continue
            except OSError:
                break  # a terminal that was hung up
            if self._rest is not None:
                self._rest -= len(data)
            self._at_once += len(data)
            if self._at_once >= _TURN:
                self._at_once = 0
                await asyncio.sleep(0)
            if data:
                return data
            break
        self._over = True
        return b""

    def ended(self) -> None:
        """The program ended: what is in the pipe now is the last of it.

        A terminal has some of it on its way still, and says itself when that was all.
        """
        if self._terminal:
            asyncio.get_running_loop().call_later(_LAST_WORDS_SECONDS, self._cut)
        else:
            self._cut()

    def release(self, keep: Callable[[int], None] | None = None) -> None:
        """Let go of it; who reads is at the end. Repeatable.

        Args:
            keep: given the end before it is closed, if it is not known that nobody writes to it.
        """
        fd, self._fd = self._fd, -1
        self._over = True
        if fd < 0:
            return
        self._wake()
        asyncio.get_running_loop().remove_reader(fd)
        if keep is not None:
            keep(fd)
        os.close(fd)

    def _cut(self) -> None:
        if self._fd >= 0 and self._rest is None:
            waiting = fcntl.ioctl(self._fd, termios.FIONREAD, b"\0" * 4)
            self._rest = struct.unpack("i", waiting)[0]
            self._wake()

    async def _more(self) -> bool:
        """Wait until there may be more; False when this was closed."""
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        loop.add_reader(self._fd, self._wake)
        try:
            await self._waiter
        finally:
            self._waiter = None
            if self._fd >= 0:
                loop.remove_reader(self._fd)
        return self._fd >= 0

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Inlet:
    """The end that a program's input goes into. One writer.

    Args:
        fd: the end, which does not block; closed with this.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._waiter: asyncio.Future[None] | None = None

    async def write(self, data: bytes) -> None:
        """Write all of it, waiting for room; a program that reads no more takes anything."""
        rest = memoryview(data)
        while rest and self._fd >= 0:
            try:
                rest = rest[os.write(self._fd, rest[:_TURN]) :]
            except BlockingIOError:
                await self._room()
            except OSError:
                self.release()
            else:
                await asyncio.sleep(0)

    def release(self) -> None:
        """Let go of it; who writes is done. Repeatable."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            self._wake()
            asyncio.get_running_loop().remove_writer(fd)
            os.close(fd)

    async def _room(self) -> None:
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        loop.add_writer(self._fd, self._wake)
        try:
            await self._waiter
        finally:
            self._waiter = None
            if self._fd >= 0:
                loop.remove_writer(self._fd)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def resize(terminal: int, columns: int, rows: int) -> None:
    """Give a terminal another size; its program is told by the kernel."""
    size = struct.pack("HHHH", *(min(max(length, 0), 0xFFFF) for length in (rows, columns)), 0, 0)
    with suppress(OSError):
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)


def end_of_file(terminal: int) -> bytes:
    """The character that ends the input of a terminal's program."""
    try:
        character: bytes = termios.tcgetattr(terminal)[6][termios.VEOF]
    except (OSError, termios.error):
        return b""
    return character
