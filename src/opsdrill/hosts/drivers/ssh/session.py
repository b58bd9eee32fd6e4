"""A program on a machine that talks while it runs, over a channel of its own."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress

import asyncssh

from opsdrill.hosts.drivers.ssh.channel import Channel, Channels
from opsdrill.hosts.drivers.ssh.reasons import NoConnection
from opsdrill.hosts.session import SessionEnd, Stream
from opsdrill.hosts.shell_link import Tell
from opsdrill.hosts.shell_sessions import known_signal

WINDOW = 512 * 1024
"""Bytes that may be on their way here; they wait in memory where nobody reads."""
_MOST_UNREAD = 256 * 1024
_PART = 64 * 1024
_HANG_UP_SECONDS = 1.0
"""Seconds that a program gets to end after it was hung up; then it goes on alone."""
_LAST_WORDS_SECONDS = 0.3
"""Seconds of silence after a program's end from which on all that it wrote has come, while
background processes keep its channel open."""
_EOF = b"\x04"
"""What ends the input of a terminal's program, if nobody set it otherwise."""


class SshSession(Channel):
    """A session under way (see `Session`).

    Args:
        channels: who counts the channel.
        tell: sends signals to its program, by their names; may raise NoConnection.
        terminal: it has one.
    """

    def __init__(self, channels: Channels, tell: Tell, *, terminal: bool) -> None:
        super().__init__(channels)
        self._tell = tell
        self._terminal = terminal
        self._unread: dict[Stream, deque[bytes]] = {"stdout": deque(), "stderr": deque()}
        self._size = 0
        self._full = False
        self._room = asyncio.Event()
        self._room.set()
        self._changed = {stream: asyncio.Event() for stream in self._unread}
        self._ended = False
        self._dropping = False
        self._end: SessionEnd | None = None
        self._over = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    async def read(self, stream: Stream, size: int = 65536) -> bytes:
        unread = self._unread[stream]
        while not unread:
            if self._ended:
                return b""
            self._changed[stream].clear()
            await self._changed[stream].wait()
        data = unread.popleft()
        if len(data) > size:
            unread.appendleft(data[size:])
            data = data[:size]
        self._size -= len(data)
        if self._full and self._size < _MOST_UNREAD // 2:
            self._full = False
            self._go_on()
        return data

    async def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest and self._takes:
            await self._room.wait()
            if self._takes and self._channel is not None:
                self._channel.write(bytes(rest[:_PART]))
            rest = rest[_PART:]
            await asyncio.sleep(0)

    async def write_eof(self) -> None:
        if self._terminal:
            await self.write(_EOF)
        elif self._takes and self._channel is not None:
            self._channel.write_eof()

    async def resize(self, columns: int, rows: int) -> None:
        if self._terminal and self._open and self._channel is not None:
            self._channel.change_terminal_size(columns, rows)

    async def signal(self, name: str) -> None:
        if known_signal(name) and not self._over.is_set():
            with suppress(NoConnection):
                await self._tell(name)

    async def kill(self) -> int | None:
        if self._over.is_set():
            return 0
        try:
            return await self._tell.kill()
        except NoConnection:
            return None

    async def wait(self) -> SessionEnd:
        await self._over.wait()
        assert self._end is not None
        return self._end

    async def close(self) -> None:
        if not self._dropping:
            self._dropping = True
            if not self._over.is_set():
                with suppress(NoConnection):
                    await self._tell("HUP", "CONT")
            self._drop()
        with suppress(TimeoutError):
            async with asyncio.timeout(_HANG_UP_SECONDS):
                await self._over.wait()
        self._finish(SessionEnd(reason="it was hung up, and goes on alone"))
        if self._terminal:
            # The machine hangs the terminal up, and whoever still has it.
            self.abandon()

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        super().connection_made(chan)
        # It may be there for long: whoever wants another channel must not wait for this one.
        self.held = True
        self._channels.held(self)

    def data_received(self, data: bytes, datatype: int | None) -> None:
        if self._dropping or self._ended:
            self.rest()
            return
        stream: Stream = "stderr" if datatype == asyncssh.EXTENDED_DATA_STDERR else "stdout"
        self._unread[stream].append(data)
        self._size += len(data)
        self._changed[stream].set()
        if self._size >= _MOST_UNREAD and self._channel is not None:
            self._full = True
            self._channel.pause_reading()
        if self._over.is_set():
            self._last_words()

    def eof_received(self) -> bool:
        self._all_came()
        return True

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def exit_status_received(self, status: int) -> None:
        # A status of the server's own making, such as asyncssh's -1, is none.
        known = 0 <= status <= 255
        self._finish(SessionEnd(status) if known else SessionEnd(reason="it has no status"))

    def exit_signal_received(
        self,
        signal: str,
        core_dumped: bool,  # noqa: ARG002
        msg: str,  # noqa: ARG002
        lang: str,  # noqa: ARG002
    ) -> None:
        self._finish(SessionEnd(signal=signal))

    def connection_lost(self, exc: Exception | None) -> None:
        self._open = False
        self._all_came()
        self._finish(SessionEnd(reason="the connection was lost" if exc else "it has no status"))
        if self._timer is not None:
            self._timer.cancel()
        self._channels.closed(self)

    @property
    def _takes(self) -> bool:
        """What is written still reaches it."""
        return self._open and not self._dropping and not self._over.is_set()

    def _finish(self, end: SessionEnd) -> None:
        if self._end is None:
            self._end = end
            self._over.set()
            self._room.set()
            self._last_words()

    def _last_words(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._open and not self._ended:
            self._timer = asyncio.get_running_loop().call_later(_LAST_WORDS_SECONDS, self._silent)

    def _silent(self) -> None:
        if self._full:
            self._last_words()  # it is we who do not read
        else:
            self._all_came()

    def _all_came(self) -> None:
        self._ended = True
        for changed in self._changed.values():
            changed.set()

    def _drop(self) -> None:
        """Nobody reads any more."""
        for unread in self._unread.values():
            unread.clear()
        self._size = 0
        self._all_came()
        self._room.set()
        if self._channel is not None and self._open:
            self._channel.write_eof()
        if self._full:
            self._full = False
            self._go_on()
