"""The channels of a connection: what carries lines and commands to the far side."""

from __future__ import annotations

import asyncio
import signal as signals
from typing import Protocol

import asyncssh

from opsdrill.hosts.drivers.ssh.exchange import Exchange

_CALM_SECONDS = 0.02
"""Pause between two looks at what background processes write."""
_HELD_SECONDS = 0.3
"""Seconds after its use from which a channel that is still open counts as held."""


class Channels(Protocol):
    """Who counts the channels of a connection."""

    @property
    def alive(self) -> bool:
        """The connection was not given up."""

    async def serve(self) -> bool:
        """Have the SSH server take what there is for all of them; whether it did."""

    def held(self, channel: Channel) -> None:
        """The channel is of no more use, and stays open."""

    def closed(self, channel: Channel) -> None:
        """The channel is closed."""


class Channel(asyncssh.SSHClientSession[bytes]):
    """A channel.

    An SSH server keeps one open for as long as a process of the far side does: closing it here
    does not close it there. So a channel that is of no more use is counted as held after a moment.
    What is written to it then is read and dropped, slowly: its end would kill background processes
    with SIGPIPE.

    Args:
        channels: told when it is held, and when it is closed.

    Attributes:
        held: it is of no more use, and still open.
    """

    def __init__(self, channels: Channels) -> None:
        self.held = False
        self._channels = channels
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._open = False
        self._told = False
        self._whole = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def opened(self) -> bool:
        """The far side opened it, at some time."""
        return self._channel is not None

    @property
    def writable(self) -> bool:
        """Neither side has closed it."""
        return self._open and self._channel is not None and not self._channel.is_closing()

    def send(self, content: bytes, *, last: bool = False) -> None:
        """Write to the far side's standard input. Into a closed channel nothing is written.

        Args:
            last: nothing comes after it.
        """
        if self._channel is not None and self.writable:
            self._channel.write(content)
            if last:
                self._channel.write_eof()

    def abandon(self) -> None:
        """Close it: nobody waits for anything of it."""
        if self._channel is not None and self._open:
            self._channel.close()
        self.leave()

    async def caught_up(self) -> bool:
        """Wait until all came that had been written on the far side; whether that is certain."""
        return await self._channels.serve()

    def leave(self) -> None:
        """It is of no more use."""
        if self._open and not self.held and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_HELD_SECONDS, self._hold)

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        self._channel = chan
        self._open = True

    def eof_received(self) -> bool:
        # Nothing on the far side can write to it any more.
        self._whole = True
        return True

    def exit_status_received(self, status: int) -> None:
        self._told = True
        # A status of the server's own making, such as asyncssh's -1, is none.
        self.told(status if 0 <= status <= 255 else None)

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
        self.told(None if number is None else 128 + number)

    def connection_lost(self, exc: Exception | None) -> None:
        self._open = False
        if self._timer is not None:
            self._timer.cancel()
        self._channels.closed(self)
        # Not every server says that the output is at its end before it closes a channel; but where
        # we close the connection ourselves there is no exception either.
        in_order = exc is None and self._told and self._channels.alive
        self.lost(whole=self._whole or in_order)

    def told(self, status: int | None) -> None:
        """The SSH server told how the far shell ended, as of `Exchange.tell`."""

    def lost(self, *, whole: bool) -> None:
        """The channel is closed; `whole`: all that the far side ever wrote came."""

    def rest(self) -> None:
        """Read on only after a while."""
        if self._channel is not None and self._open:
            self._channel.pause_reading()
            asyncio.get_running_loop().call_later(_CALM_SECONDS, self._go_on)

    def _go_on(self) -> None:
        if self._channel is not None and self._open:
            self._channel.resume_reading()

    def _hold(self) -> None:
        self.held = True
        self._channels.held(self)


class OwnChannel(Channel):
    """The channel of one line, or of one command.

    Args:
        channels: as of `Channel`.
        exchange: what comes over it.
    """

    def __init__(self, channels: Channels, exchange: Exchange) -> None:
        super().__init__(channels)
        self.exchange = exchange
        exchange.carrier = self

    def finished(self, exchange: Exchange) -> None:  # noqa: ARG002
        self.leave()

    def data_received(self, data: bytes, datatype: int | None) -> None:
        if self.exchange.complete.is_set():
            self.rest()
        else:
            self.exchange.feed(data, error=datatype is not None)

    def told(self, status: int | None) -> None:
        self.exchange.tell(status)
        self.leave()

    def lost(self, *, whole: bool) -> None:
        self.exchange.finish(whole=whole)
