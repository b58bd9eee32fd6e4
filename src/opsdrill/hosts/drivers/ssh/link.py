"""The connection to one machine: made when it is needed, and again when it was lost."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import asyncssh

from opsdrill.hosts.drivers.ssh.channel import Channel, Channels, OwnChannel
from opsdrill.hosts.drivers.ssh.connection import CHANNELS, FREE_SECONDS, WINDOW, Connection
from opsdrill.hosts.drivers.ssh.exchange import Exchange
from opsdrill.hosts.drivers.ssh.login import log_in
from opsdrill.hosts.drivers.ssh.reasons import NoConnection
from opsdrill.hosts.session import Terminal
from opsdrill.hosts.shell_link import ASK_SECONDS
from opsdrill.model.host import OUTPUT_LIMIT
from opsdrill.model.lab import LabHost

_CONNECTIONS = 16
"""Connections to a machine at most; more than one only where sessions or background processes hold
channels."""
_RETRY_AFTER = (0.5, 1.0, 2.0)
_PATIENCE_SECONDS = 12.0
"""Seconds after which an attempt to connect is not repeated."""
_DOWN_SECONDS = 30.0
"""For so long a machine that did not answer is asked once only."""
_CLOSE_SECONDS = 3.0
_URGENT_SECONDS = 30.0
_TALKS = 5
"""How often a line of ours is started whose answer gets lost with its connection."""

C = TypeVar("C", bound=Channel)


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
        self._connections: list[Connection] = []
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
        kind: type[Exchange] = Exchange,
        limit: int = OUTPUT_LIMIT,
        urgent: bool = False,
    ) -> Exchange:
        """Start a line, or a command, in a channel of its own.

        Args:
            entry: what stands on the far command line.
            nonce: what the line was made with.
            content: standard input: the line and what comes after it.
            kind: what comes back.
            limit: bytes that are kept of each output stream.
            urgent: does not wait for a free channel.

        Raises:
            NoConnection: says why.
        """
        channel = await self.channel(
            entry, lambda channels: OwnChannel(channels, kind(nonce, limit)), urgent=urgent
        )
        channel.send(content, last=True)
        return channel.exchange

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
        failures = 0
        another = False
        while True:
            connection = await self._with_room(urgent=urgent, another=another)
            made = make(connection)
            trouble = await connection.open_channel(made, entry, terminal, window)
            if trouble is None:
                return made
            another = False
            if connection.alive and connection.refused():
                another = urgent
                self.make_room()
                await asyncio.sleep(FREE_SECONDS)
                continue
            failures += 1
            if failures > len(_RETRY_AFTER):
                raise NoConnection(f"{self.host.address} opens no session: {trouble}")
            await asyncio.sleep(_RETRY_AFTER[failures - 1])

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
        silent = 0
        for _ in range(_TALKS):
            try:
                # What is urgent cannot wait until commands are over.
                async with asyncio.timeout(_URGENT_SECONDS if urgent else None):
                    exchange = await self.exchange(
                        entry, nonce, content, limit=limit, urgent=urgent
                    )
            except TimeoutError:
                raise NoConnection(f"{self.host.address} has no session free") from None
            try:
                async with asyncio.timeout(seconds):
                    await exchange.complete.wait()
            except TimeoutError:
                self.drop()
                silent += 1
                if silent > 1:
                    break
                continue
            finally:
                exchange.abandon()
            if exchange.end is not None:
                return exchange
            killed = exchange.status is not None and exchange.status > 128
            if exchange.no_shell is not None and not killed:
                raise NoConnection(exchange.no_shell, passing=False)
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
            connection.give_up()
        self._connections.clear()

    async def close(self) -> None:
        """End all connections. Repeatable, never raises."""
        self._closed = True
        if self._connecting is not None:
            self._connecting.cancel()
        connections, self._connections = self._connections, []
        self._wake_all()
        await asyncio.gather(*(one.close(_CLOSE_SECONDS) for one in connections))

    async def _with_room(self, *, urgent: bool, another: bool) -> Connection:
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
            if all(one.stuck >= one.open for one in living):
                self._wake()
                raise _all_held(self.host.address, sum(one.open for one in living))
            self.make_room()
            await self._turn()

    async def _turn(self) -> None:
        """Wait until a channel may have become free."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled():
                # It was this one's turn, which is another's then.
                self._wake()
            raise

    def _living(self) -> list[Connection]:
        if self._closed:
            raise _given_back()
        self._connections = [one for one in self._connections if one.alive]
        return self._connections

    async def _connect(self) -> None:
        """One more connection; whoever asks meanwhile waits for the same one."""
        if self._connecting is None or self._connecting.done():
            self._connecting = asyncio.ensure_future(self._new_connection())
            self._connecting.add_done_callback(self._connected)
        try:
            await asyncio.shield(self._connecting)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._closed and (task is None or not task.cancelling()):
                raise _given_back() from None
            raise

    def _connected(self, connecting: asyncio.Task[None]) -> None:
        # Whoever waits has room now; or there is no channel left whose end would wake anybody, and
        # each must hear why. Nobody may be left who asked for the connection.
        if not connecting.cancelled():
            connecting.exception()
        self._wake_all()

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
                self._connections.append(Connection(ssh, self._wake))
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

    def _wake_all(self) -> None:
        for _ in range(len(self._waiting)):
            self._wake()


def _nothing() -> None:
    """Nothing is idle."""


def _given_back() -> NoConnection:
    return NoConnection("the host was given back", passing=False)


def _all_held(address: str, channels: int) -> NoConnection:
    return NoConnection(
        f"sessions and background processes hold all {channels} channels to {address} open",
        passing=False,
        hint="redirect the output of what a step leaves running: `>/dev/null 2>&1`",
    )
