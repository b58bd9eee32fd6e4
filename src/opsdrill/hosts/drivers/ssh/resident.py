"""The channel of a shell that stays, and the commands that it starts; see `hosts.resident`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from opsdrill.hosts.command import Account, next_nonce
from opsdrill.hosts.drivers.ssh.channel import Channel, Channels
from opsdrill.hosts.drivers.ssh.exchange import Exchange
from opsdrill.hosts.framed import End
from opsdrill.hosts.resident import FREE, stay_input, stay_line

_ANSWER_SECONDS = 15.0


class ResidentExchange(Exchange):
    """What comes back from one command of a shell that stays, which says how the command ended."""

    def __init__(self, nonce: str, limit: int) -> None:
        super().__init__(nonce, limit)
        # What comes on this channel is the command's, from the first byte on.
        self.out.started = True
        self._unread: str | None = None

    @property
    def end(self) -> End | None:
        told = super().end
        return None if told is None else End(told.status, self.err.title)

    @property
    def free(self) -> bool:
        """The shell takes another command: nothing that could write for this one is left."""
        told = super().end
        return told is not None and told.shell == FREE

    @property
    def no_shell(self) -> str | None:
        return self._unread or super().no_shell

    def feed(self, data: bytes, *, error: bool) -> None:
        super().feed(data, error=error)
        # The closing words come first where the shell never came to say that it has the command.
        if not self.complete.is_set() and self.err.started and " " in self.err.title:
            self._unread = self._why()
            self.abandon()

    def not_given(self) -> None:
        """The shell that stays was gone before it was given the command."""
        self._unread = "the connection ended before the command was given to it"
        self.abandon()


class Resident(Channel):
    """The channel of a shell that stays.

    The shell ends with 0 where it said how the last command ended, and with another status only if
    it was made to: then a command that was at work has no status.

    Args:
        channels: as of `Channel`.
        over: called once for each command that is over, with whether the shell takes another one.

    Attributes:
        commands: how many it was given.
        idle_since: when its last command ended, by the loop's clock.
    """

    def __init__(self, channels: Channels, over: Callable[[Resident, bool], None]) -> None:
        super().__init__(channels)
        self.commands = 0
        self.idle_since = 0.0
        self._over = over
        self._current: ResidentExchange | None = None
        self._first_words = b""
        self._noise = b""
        self._spent = False
        self._asked: asyncio.Future[bool] | None = None

    @property
    def idle(self) -> bool:
        """It can take a command."""
        return self.writable and not self._spent and self._current is None

    def settle(self, account: Account) -> None:
        """Have the shell on the far side stay."""
        nonce = next_nonce()
        self._first_words = f"{nonce}\n".encode()
        self.send(stay_line(nonce, account).encode())

    async def answers(self) -> bool:
        """Whether it is still there, asked now."""
        if not self.idle:
            return False
        self._asked = asyncio.get_running_loop().create_future()
        self.send(b"\n")
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                return await self._asked and self.idle
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
        given = self.idle
        exchange = self._current = ResidentExchange(nonce, limit)
        exchange.carrier = self
        self.commands += 1
        if given:
            self.send(stay_input(nonce, mark, text))
        else:
            exchange.not_given()
        return exchange

    def dismiss(self) -> None:
        """End it, as it has no command."""
        self._spent = True
        self.send(b"", last=True)
        self.leave()

    def abandon(self) -> None:
        self._spent = True
        super().abandon()

    def finished(self, exchange: Exchange) -> None:  # noqa: ARG002
        free = self._current is not None and self._current.free and not self._spent
        if free:
            self._current = None
            self.idle_since = asyncio.get_running_loop().time()
        else:
            # It is still ours to drop what background processes write.
            self._spent = True
            self.leave()
        self._over(self, free)

    def data_received(self, data: bytes, datatype: int | None) -> None:
        if self._first_words and datatype is None:
            data = self._after_noise(data)
            if not data:
                return
        if self._current is not None and not self._current.complete.is_set():
            self._current.feed(data, error=datatype is not None)
        elif self._current is not None:
            self.rest()
        elif data == b"\n" and self._asked is not None and not self._asked.done():
            self._asked.set_result(True)
        else:
            # Nobody but a command's own processes can have written it; none should be left.
            self.abandon()

    def told(self, status: int | None) -> None:
        self._spent = True
        if self._current is not None and status != 0:
            self._current.tell(None)

    def lost(self, *, whole: bool) -> None:
        self._spent = True
        if self._current is not None:
            self._current.finish(whole=whole)
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(False)

    def _after_noise(self, data: bytes) -> bytes:
        """What comes after the shell's first words; before them come those of login scripts."""
        _, found, rest = (self._noise + data).partition(self._first_words)
        if found:
            self._first_words = self._noise = b""
            return rest
        self._noise = (self._noise + data)[-len(self._first_words) :]
        return b""
