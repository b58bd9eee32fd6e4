"""The connection to one machine: made when it is needed, and again when it was lost."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict, TypeVar, cast

import asyncssh

from opsdrill.hosts.drivers.ssh.exchange import Channel, Channels, Exchange
from opsdrill.hosts.drivers.ssh.login import log_in
from opsdrill.hosts.drivers.ssh.reasons import NoConnection, Refused, short
from opsdrill.hosts.session import Terminal
from opsdrill.model.host import OUTPUT_LIMIT
from opsdrill.model.lab import LabHost

CHANNELS = 9
"""Channels of a connection at once: sshd allows ten (MaxSessions), and one is for killing."""
ASK_SECONDS = 15.0
"""Seconds for what is asked on our own behalf."""
WINDOW = 2 * 1024 * 1024
"""Bytes that may be on their way here over one channel."""
_CONNECTIONS = 16
"""Connections to a machine at most; more than one only where sessions or background processes hold
channels."""
_RETRY_AFTER = (0.5, 1.0, 2.0)
_PATIENCE_SECONDS = 12.0
"""Seconds after which an attempt to connect is not repeated."""
_DOWN_SECONDS = 30.0
"""For so long a machine that did not answer is asked once only."""
_CLOSE_SECONDS = 3.0
_FREE_SECONDS = 0.02
"""Seconds after which a machine that refused a channel may have counted one less."""
_TRUST = 20
"""Channels that were opened since the last refusal, after which one more is tried."""


C = TypeVar("C", bound=Channel)


class _Connection:
    """A connection and its channels.

    Args:
        ssh: the connection.
        wake: called when a channel may have become free.
    """

    def __init__(self, ssh: asyncssh.SSHClientConnection, wake: Callable[[], None]) -> None:
        self.ssh = ssh
        self.room = CHANNELS
        self.open = 0
        self.stuck = 0
        self._granted = 0
        self._refused_at = 0.0
        self._wake = wake

    @property
    def alive(self) -> bool:
        return not self.ssh.is_closed()

    def granted(self) -> None:
        """A channel was opened."""
        self._granted += 1
        if self._granted >= _TRUST and self.room < CHANNELS:
            self.room += 1
            self._granted = 0

    def refused(self) -> bool:
        """A channel was not: the machine's own bound is lower, or it is slow to count.

        Returns:
            Whether others are open, so that it makes sense to wait for one.
        """
        now = time.monotonic()
        if now - self._refused_at > _FREE_SECONDS:
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


class Link:
    """One machine of the lab.

    Args:
        host: the machine.
        folder: where relative paths of keys start.
        via: the machine that the connection goes through.

    Attributes:
        make_room: called when a channel is wanted and none is free; has one closed that is idle.
    """

    def __init__(self, host: LabHost, folder: Path, via: Link | None = None) -> None:
        self.host = host
        self.make_room: Callable[[], None] = _nothing
        self._folder = folder
        self._via = via
        self._connections: list[_Connection] = []
        self._connecting: asyncio.Task[None] | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._down_since: float | None = None
        self._closed = False

    async def exchange(
        self,
        entry: str,
        nonce: str,
        content: bytes,
        *,
        limit: int = OUTPUT_LIMIT,
        urgent: bool = False,
    ) -> Exchange:
        """Start a line on the machine.

        Args:
            entry: what stands on the far command line.
            nonce: what the line was made with.
            content: standard input: the line and what comes after it.
            limit: bytes that are kept of each output stream.
            urgent: does not wait for a free channel.

        Raises:
            NoConnection: says why.
        """
        exchange = await self.channel(
            entry, lambda channels: Exchange(nonce, limit, channels), urgent=urgent
        )
        exchange.send(content)
        return exchange

    async def channel(
        self,
        entry: str | bytes | None,
        make: Callable[[Channels], C],
        *,
        urgent: bool = False,
        terminal: Terminal | None = None,
        window: int = WINDOW,
    ) -> C:
        """Open a channel. Arguments as of `exchange`.

        Args:
            entry: None: the machine's SFTP server instead.
            make: makes what takes the channel, told who counts it.
            terminal: that it is to have.
            window: bytes that may be on their way here.

        Raises:
            NoConnection: says why.
            Refused: the machine gives no such channel.
        """
        # Half an opened channel would be a shell on the far side that waits for ever.
        task = asyncio.ensure_future(self._open(entry, make, terminal, window, urgent=urgent))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_abandon)
            raise

    async def talk(
        self,
        entry: str,
        nonce: str,
        content: bytes,
        *,
        seconds: float = ASK_SECONDS,
        limit: int = OUTPUT_LIMIT,
        urgent: bool = False,
    ) -> Exchange:
        """Start a line of ours and wait for its end. Arguments as of `exchange`.

        Args:
            seconds: after which a machine that says nothing is asked once more, over a new
                connection.

        Raises:
            NoConnection: it did not answer.
        """
        for last in (False, True):
            exchange = await self.exchange(entry, nonce, content, limit=limit, urgent=urgent)
            try:
                async with asyncio.timeout(seconds):
                    await exchange.over.wait()
            except TimeoutError:
                self.drop()
                continue
            finally:
                if not exchange.over.is_set():
                    exchange.abandon()
            if exchange.end is not None:
                return exchange
            if exchange.no_shell is not None:
                raise NoConnection(exchange.no_shell, passing=False)
            if last:
                break
        raise NoConnection(f"{self.host.address} lets in, and then says nothing")

    @property
    def crowded(self) -> bool:
        """Somebody waits for a free channel."""
        return any(not waiter.done() for waiter in self._waiting)

    @property
    def room(self) -> int:
        """Channels that may be open at once, as far as is known."""
        return max((one.room for one in self._connections), default=CHANNELS)

    async def connection(self) -> asyncssh.SSHClientConnection:
        """A living connection, for machines behind this one.

        Raises:
            NoConnection: says why.
        """
        if not self._living():
            await self._connect()
        return self._living()[-1].ssh

    def drop(self) -> None:
        """Give up the connections: they do not answer."""
        for connection in self._connections:
            connection.ssh.abort()
        self._connections.clear()

    async def close(self) -> None:
        """End all connections. Repeatable, never raises."""
        self._closed = True
        if self._connecting is not None:
            self._connecting.cancel()
        connections, self._connections = self._connections, []
        for connection in connections:
            connection.ssh.close()
        while self._waiting:
            self._wake()
        for connection in connections:
            try:
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await connection.ssh.wait_closed()
            except (TimeoutError, OSError, asyncssh.Error):
                connection.ssh.abort()

    async def _open(
        self,
        entry: str | bytes | None,
        make: Callable[[Channels], C],
        terminal: Terminal | None,
        window: int,
        *,
        urgent: bool,
    ) -> C:
        kind = _NO_TERMINAL if terminal is None else _terminal(terminal)
        failures = 0
        another = False
        while True:
            connection = await self._with_room(urgent=urgent, another=another)
            connection.open += 1
            made = make(connection)
            try:
                await connection.ssh.create_session(
                    lambda made=made: made,  # type: ignore[misc]
                    cast("str", entry or ()),  # asyncssh sends bytes as they are
                    subsystem="sftp" if entry is None else (),
                    encoding=None,
                    window=window,
                    **kind,
                )
                connection.granted()
                return made
            except (asyncssh.Error, OSError) as error:
                trouble = short(error)
                refused = _refused(error, files=entry is None)
            if refused is not None:
                made.abandon()
                if not made.begun:
                    connection.closed(made)
                raise Refused(refused)
            if not made.begun:
                connection.closed(made)
            another = False
            if connection.alive and connection.refused():
                another = urgent
                self.make_room()
                await asyncio.sleep(_FREE_SECONDS)
                continue
            failures += 1
            if failures > len(_RETRY_AFTER):
                raise NoConnection(f"{self.host.address} opens no session: {trouble}")
            await asyncio.sleep(_RETRY_AFTER[failures - 1])

    async def _with_room(self, *, urgent: bool, another: bool) -> _Connection:
        while True:
            living = self._living()
            free = [one for one in living if one.open < one.room + urgent]
            if free and not another:
                return max(free, key=lambda one: one.room - one.open)
            stuck = another or urgent or any(one.stuck for one in living)
            if not living or (stuck and len(living) < _CONNECTIONS):
                await self._connect()
                another = False
                continue
            self.make_room()
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            await waiter

    def _living(self) -> list[_Connection]:
        if self._closed:
            raise _given_back()
        self._connections = [one for one in self._connections if one.alive]
        return self._connections

    async def _connect(self) -> None:
        """One more connection; whoever asks meanwhile waits for the same one."""
        if self._connecting is None or self._connecting.done():
            self._connecting = asyncio.ensure_future(self._new_connection())
            self._connecting.add_done_callback(_outcome)
        try:
            await asyncio.shield(self._connecting)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._closed and (task is None or not task.cancelling()):
                raise _given_back() from None
            raise

    async def _new_connection(self) -> None:
        loop = asyncio.get_running_loop()
        begin = loop.time()
        down = self._down_since is not None and begin - self._down_since < _DOWN_SECONDS
        pauses = iter(() if down else _RETRY_AFTER)
        while True:
            try:
                ssh = await self._log_in()
            except NoConnection as error:
                pause = next(pauses, None)
                tired = loop.time() - begin > _PATIENCE_SECONDS
                if not error.passing or pause is None or tired:
                    self._down_since = loop.time()
                    raise
            else:
                self._down_since = None
                self._connections.append(_Connection(ssh, self._wake))
                for _ in range(CHANNELS):
                    self._wake()
                return
            await asyncio.sleep(pause)

    async def _log_in(self) -> asyncssh.SSHClientConnection:
        if self._via is None:
            return await log_in(self.host, self._folder, None)
        try:
            tunnel = await self._via.connection()
        except NoConnection as error:
            raise NoConnection(
                f"the way through {self.host.via} is closed: {error.reason}",
                passing=error.passing,
                hint=error.hint,
            ) from None
        return await log_in(self.host, self._folder, tunnel)

    def _wake(self) -> None:
        """Let the next one look for room."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return


def _refused(error: Exception, *, files: bool) -> str | None:
    """What the machine does not give, where asking again cannot help."""
    code = error.code if isinstance(error, asyncssh.ChannelOpenError) else None
    if code == asyncssh.OPEN_REQUEST_PTY_FAILED:
        return "its SSH server gives no terminal"
    if files and code == asyncssh.OPEN_REQUEST_SESSION_FAILED:
        return "its SSH server has no SFTP: install openssh-sftp-server on it"
    return None


class _Kind(TypedDict):
    """How asyncssh is told of a terminal."""

    term_type: str | None
    term_size: tuple[int, int]


_NO_TERMINAL = _Kind(term_type=None, term_size=(0, 0))


def _terminal(terminal: Terminal) -> _Kind:
    return _Kind(term_type=terminal.kind, term_size=(terminal.columns, terminal.rows))


def _nothing() -> None:
    """Nothing is idle."""


def _given_back() -> NoConnection:
    return NoConnection("the host was given back", passing=False)


def _abandon(opening: asyncio.Task[C]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().abandon()


def _outcome(connecting: asyncio.Task[None]) -> None:
    # Whoever waited for it has the exception, if anybody still did.
    if not connecting.cancelled():
        connecting.exception()
