"""Shells that stay on a machine for a while, so that a command needs no channel of its own."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol, TypeVar

from opsdrill.hosts.command import Account, next_nonce
from opsdrill.hosts.drivers.ssh.exchange import Channel, Channels, Exchange
from opsdrill.hosts.resident import ENTRY, FREE, stay_input, stay_line
from opsdrill.model.host import OUTPUT_LIMIT

_IDLE_SECONDS = 0.25
"""Seconds after which a shell that nobody used is ended: no job finds one on its machine."""
_FRESH_SECONDS = 0.001
"""Seconds after which an idle shell is asked whether it is still there: a command that is lost with
its connection cannot be given again, as nobody knows whether it ran."""
_ANSWER_SECONDS = 15.0
_VAIN = 3
"""Shells in a row that took no second command, after which they are no longer tried..."""
_REST = 30
"""...for so many commands."""

C = TypeVar("C", bound=Channel)


class Way(Protocol):
    """The connection to the machine."""

    @property
    def room(self) -> int:
        """Channels that may be open at once."""

    @property
    def crowded(self) -> bool:
        """Somebody waits for a free channel."""

    async def channel(self, entry: str, make: Callable[[Channels], C]) -> C:
        """Open a channel.

        Raises:
            NoConnection: says why.
        """


class Resident(Channel):
    """The channel of a shell that stays; see `opsdrill.hosts.resident`.

    Args:
        channels: who counts it.
        left: called once for each command, when it is over or the channel is closed.

    Attributes:
        commands: how many it was given.
    """

    def __init__(self, channels: Channels, left: Callable[[Resident, bool], None]) -> None:
        super().__init__()
        self.commands = 0
        self._channels = channels
        self._left = left
        self._current: ResidentExchange | None = None
        self._used = 0.0
        self._first_words = b""
        self._noise = b""
        self._spent = False
        self._asked: asyncio.Future[bool] | None = None

    @property
    def alive(self) -> bool:
        """It can take a command."""
        return self._open and not self._spent and self._current is None

    @property
    def idle_since(self) -> float:
        """When its last command ended, by the loop's clock."""
        return self._used

    def settle(self, account: Account) -> None:
        """Have the shell on the far side stay."""
        if self._channel is not None and self._open:
            nonce = next_nonce()
            self._first_words = f"{nonce}\n".encode()
            self._channel.write(stay_line(nonce, account).encode())

    async def answers(self) -> bool:
        """Whether it is still there, asked now."""
        if self._channel is None or not self.alive:
            return False
        self._asked = asyncio.get_running_loop().create_future()
        self._channel.write(b"\n")
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                return await self._asked
        except TimeoutError:
            self.abandon()
            return False
        except asyncio.CancelledError:
            self.abandon()
            raise
        finally:
            self._asked = None

    def begin(self, nonce: str, mark: int, text: bytes, limit: int) -> ResidentExchange:
        """Give it a command. Arguments as of `stay_input`, the limit as of `Exchange`."""
        exchange = self._current = ResidentExchange(nonce, limit, self)
        self.commands += 1
        if self._channel is not None and self._open:
            exchange.connection_made(self._channel)
            self._channel.write(stay_input(nonce, mark, text))
        else:
            exchange.connection_lost(ConnectionResetError())
        return exchange

    def leave(self) -> None:
        """End it, as it has no command."""
        self._spent = True
        if self._channel is not None and self._open:
            self._channel.write_eof()

    def ended(self, exchange: ResidentExchange, *, free: bool) -> None:
        """A command is over. It is still ours to drop what others write, if the shell is not free.

        Args:
            exchange: the command's.
            free: the shell takes another one.
        """
        if free:
            self._current = None
            self._used = _now()
        if exchange.counts:
            exchange.counts = False
            self._left(self, free)

    def abandon(self) -> None:
        self._spent = True
        super().abandon()

    def note_held(self) -> None:
        """Background processes keep it open."""
        self.held = True
        self._channels.held(self)

    def data_received(self, data: bytes, datatype: int | None) -> None:
        if self._first_words and datatype is None:
            data = self._after_noise(data)
            if not data:
                return
        if self._current is not None:
            self._current.data_received(data, datatype)
        elif data == b"\n" and self._asked is not None and not self._asked.done():
            self._asked.set_result(True)
        else:
            # Nobody but a command's own processes can have written it; none should be left.
            self.abandon()

    def _after_noise(self, data: bytes) -> bytes:
        """What comes after the shell's first words; before them come those of login scripts."""
        _, found, rest = (self._noise + data).partition(self._first_words)
        if found:
            self._first_words = self._noise = b""
            return rest
        self._noise = (self._noise + data)[-len(self._first_words) :]
        return b""

    def exit_status_received(self, status: int) -> None:
        self._spent = True
        if self._current is not None:
            self._current.exit_status_received(status)

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        self._spent = True
        if self._current is not None:
            self._current.exit_signal_received(signal, core_dumped, msg, lang)

    def connection_lost(self, exc: Exception | None) -> None:
        self._open = False
        if self._current is not None:
            self._current.connection_lost(exc)
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(False)
        self._channels.closed(self)


class ResidentExchange(Exchange):
    """One command of a shell that stays; the shell says how it ended.

    The shell itself ends with 0 once it said so, and with another status only if it was made to:
    then a command that was at work has no status.

    Attributes:
        counts: the command is still to be reported as over.
    """

    def __init__(self, nonce: str, limit: int, resident: Resident) -> None:
        super().__init__(nonce, limit, _Uncounted(resident))
        # What comes on this channel is the command's, from the first byte on.
        self.out.started = True
        self.counts = True
        self._never_begun = False
        self._resident = resident

    @property
    def no_shell(self) -> str | None:
        return self._why() if self._never_begun else super().no_shell

    def data_received(self, data: bytes, datatype: int | None) -> None:
        super().data_received(data, datatype)
        # The closing words come first where the shell never came to say that it has the command.
        if not self.over.is_set() and self.err.started and " " in self.err.title:
            self._never_begun = True
            self.finish()
            self._resident.abandon()

    def finish(self) -> None:
        end = self.end
        free = end is not None and end.shell == FREE
        if end is not None:
            self.status = end.status
        if free:
            self._open = False
        super().finish()
        self._resident.ended(self, free=free)

    def exit_status_received(self, status: int) -> None:
        self._told = True
        if status != 0:
            self.left.set()

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:  # noqa: ARG002
        self._told = True
        self.left.set()

    def connection_lost(self, exc: Exception | None) -> None:
        # Whoever closes a channel in good order has sent all that was written to it.
        self._told = self._told or exc is None
        super().connection_lost(exc)
        self._resident.ended(self, free=False)


class _Uncounted:
    """A command has no channel of its own to count."""

    def __init__(self, resident: Resident) -> None:
        self._resident = resident

    def held(self, channel: Channel) -> None:  # noqa: ARG002
        self._resident.note_held()

    def closed(self, channel: Channel) -> None:
        """Its shell's channel is counted."""


class Residents:
    """The shells that stay on one machine, as many as there are commands at once.

    Args:
        way: the connection.
        account: who the commands run as: the login, which is root.
    """

    def __init__(self, way: Way, account: Account) -> None:
        self.account = account
        self._way = way
        self._idle: list[Resident] = []
        self._busy = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._sweeping: asyncio.TimerHandle | None = None
        self._vain = 0
        self._rest = 0

    def worth(self) -> bool:
        """Whether a command is better given to one of these than to a channel of its own.

        On some machines none ever takes a second command: where no one can tell what is alive, or
        where something is always being started.
        """
        if self._rest:
            self._rest -= 1
        return not self._rest

    async def exchange(
        self, nonce: str, mark: int, text: bytes, *, limit: int = OUTPUT_LIMIT
    ) -> ResidentExchange:
        """Start a command. Arguments as of `stay_input`, the limit as of `Exchange`.

        Raises:
            NoConnection: says why.
        """
        await self._turn()
        try:
            resident = await self._idle_one()
            if resident is None:
                resident = await self._way.channel(ENTRY, self._made)
                resident.settle(self.account)
        except BaseException:
            self._done()
            raise
        return resident.begin(nonce, mark, text, limit)

    def give_back(self) -> None:
        """Somebody else needs a channel."""
        resident = self._take()
        if resident is not None:
            resident.leave()

    def _made(self, channels: Channels) -> Resident:
        return Resident(channels, self._left)

    async def _idle_one(self) -> Resident | None:
        while (resident := self._take()) is not None:
            if _now() - resident.idle_since < _FRESH_SECONDS or await resident.answers():
                return resident
        return None

    def _take(self) -> Resident | None:
        while self._idle:
            resident = self._idle.pop()
            if resident.alive:
                return resident
        return None

    async def _turn(self) -> None:
        while self._busy >= self._way.room:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done():
                    self._wake()
                raise
        self._busy += 1

    def _done(self) -> None:
        self._busy -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _left(self, resident: Resident, free: bool) -> None:
        if free and self._way.crowded:
            resident.leave()
        elif free:
            self._idle.append(resident)
            self._sweep_later(_IDLE_SECONDS)
        elif resident.commands == 1:
            self._vain += 1
        if resident.commands > 1:
            self._vain = 0
        if self._vain >= _VAIN:
            self._vain, self._rest = 0, _REST
        self._done()

    def _sweep_later(self, seconds: float) -> None:
        if self._sweeping is None:
            self._sweeping = asyncio.get_running_loop().call_later(seconds, self._sweep)

    def _sweep(self) -> None:
        self._sweeping = None
        now = _now()
        old = [one for one in self._idle if now - one.idle_since >= _IDLE_SECONDS]
        self._idle = [one for one in self._idle if one.alive and one not in old]
        for resident in old:
            resident.leave()
        if self._idle:
            self._sweep_later(self._idle[0].idle_since + _IDLE_SECONDS - now)


def _now() -> float:
    return asyncio.get_running_loop().time()
