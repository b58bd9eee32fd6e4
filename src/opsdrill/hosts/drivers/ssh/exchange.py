"""One channel of a connection: a command, or a line of `hosts.command`, on the far side."""

from __future__ import annotations

import asyncio
import signal as signals
from typing import Protocol

import asyncssh

from opsdrill.hosts.command import NO_SHELL
from opsdrill.hosts.drivers.ssh.reasons import short
from opsdrill.hosts.framed import End, FramedOutput

CALM_SECONDS = 0.02
"""Pause between two looks at what background processes write."""


_HELD_SECONDS = 0.3
"""Seconds after its end from which a channel counts as held by background processes."""


class Channels(Protocol):
    """Who counts the channels of a connection."""

    def held(self, channel: Channel) -> None:
        """The line is over, and background processes keep its channel open."""

    def closed(self, channel: Channel) -> None:
        """The channel is closed."""


class Channel(asyncssh.SSHClientSession[bytes]):
    """One channel of a connection.

    Attributes:
        held: it is of no more use, and still open.
    """

    def __init__(self) -> None:
        self.held = False
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._open = False

    @property
    def begun(self) -> bool:
        """The far side opened the channel."""
        return self._channel is not None

    def abandon(self) -> None:
        """Nobody waits for it any more."""
        if self._channel is not None and self._open:
            self._channel.close()

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        self._channel = chan
        self._open = True

    def eof_received(self) -> bool:
        return True


class Exchange(Channel):
    """What comes back over one channel.

    A line says itself when it is over. A command is over when its shell ended, which the SSH
    server tells, and when all it wrote came: usually when the channel closes. Background processes
    that hold the output open keep the channel open: its end would kill them with SIGPIPE. What
    they write is read and dropped, slowly.

    Args:
        nonce: what the line, or the command's input, was made with.
        limit: bytes that are kept of each stream.
        channels: told when the channel is held, and when it is closed.

    Attributes:
        over: set once nothing more will be known.
        left: set once the far shell ended, or nothing more will be known.
        status: how the far shell ended, 128+n for signal n.
        held: its end came, and the channel is still open.
        cut: the connection ended before its end came.
    """

    def __init__(self, nonce: str, limit: int, channels: Channels) -> None:
        super().__init__()
        self.out = FramedOutput(nonce, limit)
        self.err = FramedOutput(nonce, limit)
        self.over = asyncio.Event()
        self.left = asyncio.Event()
        self.status: int | None = None
        self.cut = False
        self._told = False
        self._channels = channels
        self._timer: asyncio.TimerHandle | None = None

    @property
    def no_shell(self) -> str | None:
        """Why the line was never at work or nobody read what came after it, if that is certain."""
        unread = self.end is not None and self.end.shell == NO_SHELL
        if not unread and (self.err.started or not self._told):
            return None
        return self._why()

    def _why(self) -> str:
        said = short((self.err.text or self.err.noise).strip().rpartition("\n")[2])
        return f"no shell can be started ({said})" if said else "no shell can be started"

    @property
    def end(self) -> End | None:
        """How it ended; None if the far side never said."""
        return self.err.end if self.out.ended else None

    def send(self, content: bytes) -> None:
        """All that the far side's standard input gets."""
        if self._channel is not None and self._open:
            self._channel.write(content)
            self._channel.write_eof()

    def data_received(self, data: bytes, datatype: int | None) -> None:
        if self.over.is_set():
            self._rest()
            return
        (self.err if datatype == asyncssh.EXTENDED_DATA_STDERR else self.out).feed(data)
        if self.out.ended and self.err.end is not None:
            self.finish()

    def finish(self) -> None:
        """Nothing that comes now is of interest."""
        self.over.set()
        self.left.set()
        if self._open and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_HELD_SECONDS, self._count)

    def exit_status_received(self, status: int) -> None:
        self._told = True
        # A status of the server's own making, such as asyncssh's -1, is none.
        self.status = status if 0 <= status <= 255 else None
        self.left.set()

    def exit_signal_received(
        self,
        signal: str,
        core_dumped: bool,  # noqa: ARG002
        msg: str,  # noqa: ARG002
        lang: str,  # noqa: ARG002
    ) -> None:
        self._told = True
        number = signals.Signals.__members__.get(f"SIG{signal}")
        # RFC 4254 names thirteen of them; for the others there is no status to tell.
        self.status = None if number is None else 128 + number
        self.left.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._open = False
        self.cut = exc is not None and not self.over.is_set()
        self.out.close()
        self.err.close()
        self.over.set()
        self.left.set()
        if self._timer is not None:
            self._timer.cancel()
        self._channels.closed(self)

    def _count(self) -> None:
        self.held = True
        self._channels.held(self)

    def _rest(self) -> None:
        channel = self._channel
        if channel is not None:
            channel.pause_reading()
            asyncio.get_running_loop().call_later(CALM_SECONDS, self._go_on)

    def _go_on(self) -> None:
        if self._channel is not None and self._open:
            self._channel.resume_reading()
