"""A connection to a machine, and how many channels it has."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypedDict, cast

import asyncssh

from opsdrill.hosts.drivers.ssh.channel import Channel
from opsdrill.hosts.drivers.ssh.reasons import Refused, short
from opsdrill.hosts.session import Terminal

CHANNELS = 9
"""Channels of a connection at once: sshd allows ten (MaxSessions), and one is for killing."""
WINDOW = 2 * 1024 * 1024
"""Bytes that may be on their way here over one channel."""
FREE_SECONDS = 0.02
"""Seconds after which a machine that refused a channel may have counted one less."""
_TURNS = 10
"""Questions that a server answers while it takes a full pipe of output to its end."""
_TRUST = 20
"""Channels that were opened since the last refusal, after which one more is tried."""

_Opened = tuple[asyncssh.SSHClientChannel[bytes], asyncssh.SSHClientSession[bytes]]


class Connection:
    """A connection and its channels.

    Args:
        ssh: the connection.
        wake: called when a channel may have become free.

    Attributes:
        room: channels that may be open at once, as far as is known.
        open: channels that are open, or being opened.
        stuck: those of them that are of no more use.
    """

    def __init__(self, ssh: asyncssh.SSHClientConnection, wake: Callable[[], None]) -> None:
        self.ssh = ssh
        self.room = CHANNELS
        self.open = 0
        self.stuck = 0
        self._granted = 0
        self._refused_at = 0.0
        self._wake = wake
        self._given_up = False

    @property
    def alive(self) -> bool:
        return not self._given_up and not self.ssh.is_closed()

    def give_up(self) -> None:
        """Close it at once: it does not answer."""
        self._given_up = True
        self.ssh.abort()

    async def close(self, seconds: float) -> None:
        """Close it in good order, if that is done in time. Never raises."""
        self._given_up = True
        self.ssh.close()
        try:
            async with asyncio.timeout(seconds):
                await self.ssh.wait_closed()
        except (TimeoutError, OSError, asyncssh.Error):
            self.ssh.abort()

    async def open_channel(
        self,
        channel: Channel,
        entry: str | bytes | None,
        terminal: Terminal | None = None,
        window: int = WINDOW,
    ) -> str | None:
        """Open a channel; if that fails for now, why. A call that is cancelled leaves none open.

        Args:
            channel: what takes it.
            entry: what stands on the far command line; None: the machine's SFTP server instead.
            terminal: that it is to have.
            window: bytes that may be on their way here.

        Raises:
            Refused: the machine gives no such channel.
        """
        self.open += 1
        # Half an opened channel would be a shell on the far side that waits for ever.
        opening = asyncio.ensure_future(
            self.ssh.create_session(
                lambda: channel,
                cast("str", entry or ()),  # asyncssh sends bytes as they are
                subsystem="sftp" if entry is None else (),
                encoding=None,
                window=window,
                **_kind(terminal),
            )
        )
        opening.add_done_callback(lambda done: self._opened(channel, done))
        try:
            await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(lambda _: channel.abandon())
            raise
        except (asyncssh.Error, OSError) as error:
            if (refused := _refused(error, files=entry is None)) is not None:
                channel.abandon()
                raise Refused(refused) from None
            return short(error)
        return None

    async def serve(self) -> bool:
        """Have the server take what there is of the output of all channels; whether it did.

        An SSH server serves a connection in turns: in each it takes a part of what is in the pipes
        on the machine, and then answers what it was asked. So it is asked something a few times.
        """
        for _ in range(_TURNS):
            # It ends with the connection, which does not outlive a server that is silent.
            await self.ssh._make_global_request(b"keepalive@openssh.com")
        return self.alive

    def refused(self) -> bool:
        """A channel was not opened: the machine's own bound is lower, or it is slow to count.

        Returns:
            Whether others are open, so that it makes sense to wait for one.
        """
        now = time.monotonic()
        if now - self._refused_at > FREE_SECONDS:
            self.room = max(1, self.room - 1)
            self._refused_at = now
        self._granted = 0
        return self.open > 0

    def held(self, channel: Channel) -> None:  # noqa: ARG002
        self.stuck += 1
        self._wake()

    def closed(self, channel: Channel) -> None:
        self.open -= 1
        if channel.held:
            self.stuck -= 1
        self._wake()

    def _opened(self, channel: Channel, opening: asyncio.Future[_Opened]) -> None:
        if opening.cancelled() or opening.exception() is not None:
            # One that was opened and then failed is told to be closed.
            if not channel.opened:
                self.closed(channel)
            return
        self._granted += 1
        if self._granted >= _TRUST and self.room < CHANNELS:
            self.room += 1
            self._granted = 0


class _Kind(TypedDict):
    """How asyncssh is told of a terminal."""

    term_type: str | None
    term_size: tuple[int, int]


def _kind(terminal: Terminal | None) -> _Kind:
    if terminal is None:
        return _Kind(term_type=None, term_size=(0, 0))
    return _Kind(term_type=terminal.kind, term_size=(terminal.columns, terminal.rows))


def _refused(error: Exception, *, files: bool) -> str | None:
    """What the machine does not give, where asking again cannot help."""
    code = error.code if isinstance(error, asyncssh.ChannelOpenError) else None
    if code == asyncssh.OPEN_REQUEST_PTY_FAILED:
        return "its SSH server gives no terminal"
    if files and code == asyncssh.OPEN_REQUEST_SESSION_FAILED:
        return "its SSH server has no SFTP: install openssh-sftp-server on it"
    return None
