"""Shells that stay on a machine for a while, so that a command needs no channel of its own."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol, TypeVar

from opsdrill.hosts.command import Account
from opsdrill.hosts.drivers.ssh.channel import Channel, Channels
from opsdrill.hosts.drivers.ssh.resident import Resident, ResidentExchange
from opsdrill.hosts.resident import ENTRY
from opsdrill.model.host import OUTPUT_LIMIT

_IDLE_SECONDS = 0.25
"""Seconds after which a shell that nobody used is ended: no job finds one on its machine."""
_FRESH_SECONDS = 0.001
"""Seconds after which an idle shell is asked whether it is still there: a command that is lost with
its connection cannot be given again, as nobody knows whether it ran."""
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

    async def start(
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
            resident.dismiss()

    def _made(self, channels: Channels) -> Resident:
        return Resident(channels, self._over)

    async def _idle_one(self) -> Resident | None:
        now = asyncio.get_running_loop().time
        while (resident := self._take()) is not None:
            if now() - resident.idle_since < _FRESH_SECONDS or await resident.answers():
                return resident
        return None

    def _take(self) -> Resident | None:
        while self._idle:
            resident = self._idle.pop()
            if resident.idle:
                return resident
        return None

    async def _turn(self) -> None:
        while self._busy >= self._way.room:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if not waiter.cancelled():
                    # It was this one's turn, which is another's then.
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

    def _over(self, resident: Resident, free: bool) -> None:
        if free and self._way.crowded:
            resident.dismiss()
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
        now = asyncio.get_running_loop().time()
        idle, self._idle = [one for one in self._idle if one.idle], []
        for resident in idle:
            if now - resident.idle_since < _IDLE_SECONDS:
                self._idle.append(resident)
            else:
                resident.dismiss()
        if self._idle:
            self._sweep_later(self._idle[0].idle_since + _IDLE_SECONDS - now)
