"""One attempt to have a command done on a host, and what became of it."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass

from opsdrill.hosts.command import Account, kill_line, next_mark, next_nonce
from opsdrill.hosts.shell_link import Exchange, NoAnswer, ShellLink

_START_SECONDS = 30.0
"""Seconds until a command is at work; its time limit counts from there."""
_KILL_SECONDS = 20.0
"""Seconds after which killing gives up."""
_AFTER_KILL_SECONDS = 1.0
"""Seconds from a killing to the end of the command's exchange."""
_KILLERS = 2
"""How often killing is tried whose own end is not told: the command may have killed the killer."""
_NOT_KNOWN = "whether all that it started was killed is not known"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one attempt: a status, a time-out, or neither and `reason` says why.

    Attributes:
        exchange: what came back, if anything did.
        status: the exit status.
        shell: the shell that ran it.
        timed_out: it was at work and did not end in time.
        dropped: how it ended got lost, and the host answers again.
        reason: why it is as it is.
        again: the command was never read, so that it can be tried again.
    """

    exchange: Exchange | None = None
    status: int | None = None
    shell: str | None = None
    timed_out: bool = False
    dropped: bool = False
    reason: str | None = None
    again: bool = False


class Attempt:
    """One command on its way.

    Args:
        link: the way to the host.
        shell: the name of the shell that commands get there.
        marks: what a command started can be told apart there, and so be killed.
    """

    def __init__(self, link: ShellLink, shell: str, *, marks: bool = True) -> None:
        self._link = link
        self._shell = shell
        self._marks = marks
        self._mark = next_mark()

    async def outcome(self, account: Account, text: bytes, seconds: float) -> Outcome:
        """Start the command and wait until it is over. Cancelling the call kills it.

        Args:
            account: who runs it.
            text: the command's.
            seconds: until it is killed, with all that it started.
        """
        try:
            exchange = await self._link.start(account, next_nonce(), self._mark, text)
        except NoAnswer as error:
            return Outcome(reason=error.reason, again=error.again)
        try:
            return await self._awaited(exchange, seconds)
        except asyncio.CancelledError:
            with suppress(NoAnswer):
                await self._surely_end(exchange)
            raise

    async def _awaited(self, exchange: Exchange, seconds: float) -> Outcome:
        begun = False
        try:
            async with asyncio.timeout(_START_SECONDS) as limit:
                await exchange.begun.wait()
                begun = True
                limit.reschedule(asyncio.get_running_loop().time() + seconds)
                await exchange.over.wait()
        except TimeoutError:
            return await self._late(exchange, seconds if begun else None)
        return await self._over(exchange)

    async def _over(self, exchange: Exchange) -> Outcome:
        try:
            unread = await self._link.no_shell(exchange)
            if unread is not None:
                return Outcome(reason=unread, again=True)
            end = exchange.end
            if end is not None:
                return Outcome(exchange, status=end.status, shell=end.shell)
            # Whatever is left of it would work on behind our back.
            left = await self._end(exchange)
        except NoAnswer as error:
            if not exchange.err.started:
                return Outcome(reason=error.reason, again=error.again)
            return Outcome(exchange, reason=f"it was lost half way: {error.reason}")
        if exchange.killed:
            reason = f"the shell that started it was killed{_more(left)}"
            return Outcome(exchange, status=137, shell=self._shell, reason=reason)
        reason = "its connection, or the shell behind it, ended half way; the host answers again"
        return Outcome(exchange, dropped=True, reason=f"{reason}{_more(left)}")

    async def _late(self, exchange: Exchange, seconds: float | None) -> Outcome:
        """It is not over in time; `seconds` None: it did not even begin."""
        limit = f"{_START_SECONDS if seconds is None else seconds:g} s"
        try:
            left = await self._end(exchange)
        except NoAnswer as error:
            reason = f"no end within {limit}, and then no answer: {error.reason}"
            return Outcome(exchange, reason=reason)
        if seconds is None:
            reason = f"the command did not start within {limit}"
            return Outcome(exchange, reason=f"{reason}{_more(left)}")
        done = "no end within" if left is None else "killed after"
        all_of_it = " with everything it started" if left == 0 else ""
        shell = exchange.end.shell if exchange.end is not None else exchange.err.title or None
        reason = f"{done} {limit}{all_of_it}{_more(left)}"
        return Outcome(exchange, shell=shell, timed_out=True, reason=reason)

    async def _surely_end(self, exchange: Exchange) -> int | None:
        """The same as `_end`, to its end even if whoever waits is cancelled; twice is enough."""
        ending = asyncio.ensure_future(self._end(exchange))
        ending.add_done_callback(_seen)
        try:
            return await asyncio.shield(ending)
        except asyncio.CancelledError:
            await asyncio.wait([ending])
            raise

    async def _end(self, exchange: Exchange) -> int | None:
        """Kill a command with everything it started.

        Returns:
            How many processes are left; None if that is not known.

        Raises:
            NoAnswer: the host does not answer.
        """
        try:
            end = time.monotonic() + _KILL_SECONDS
            begun, left = exchange.err.started, await self._kill()
            # The shell behind it may only now come to start it, or was itself the first to go.
            while not await _comes(exchange.over):
                if time.monotonic() > end:
                    return None
                begun, left = exchange.err.started, await self._kill()
            if not begun and exchange.end is None:
                # It was on its way when the way was lost, and may have started after the killing.
                await asyncio.sleep(_AFTER_KILL_SECONDS)
                left = await self._kill()
            # What was written before the killing may still be on its way.
            await _comes(exchange.complete)
            return left
        finally:
            exchange.abandon()

    async def _kill(self) -> int | None:
        """Kill what carries the mark; how many are left, None if nobody can tell."""
        for _ in range(_KILLERS if self._marks else 0):
            nonce = next_nonce()
            line = kill_line(nonce, self._mark).encode()
            told = (await self._link.talk(nonce, line, urgent=True)).out.text.strip()
            if told.isdecimal():
                return int(told)
        return None


async def _comes(event: asyncio.Event) -> bool:
    """Wait for a moment; whether it came."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_AFTER_KILL_SECONDS):
            await event.wait()
    return event.is_set()


def _more(left: int | None) -> str:
    """What is to be said about processes that are not known to be gone."""
    if left is None:
        return f"; {_NOT_KNOWN}"
    return f"; {left} processes that it started could not be killed" if left else ""


def _seen(ending: asyncio.Future[int | None]) -> None:
    # Nobody may be left to hear that the host does not answer.
    if not ending.cancelled():
        ending.exception()
