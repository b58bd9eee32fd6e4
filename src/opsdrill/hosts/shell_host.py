"""A host that is spoken to by lines of `hosts.command`, as a run sees it."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from opsdrill.errors import HostError, HostUnreachable
from opsdrill.hosts.command import (
    MISSING,
    NOT_REGULAR,
    Account,
    account_text,
    ask_line,
    get_line,
    kill_line,
    next_mark,
    next_nonce,
    put_line,
    run_line,
)
from opsdrill.hosts.look import NoAccount, parse_account
from opsdrill.hosts.session import Session, SessionRequest
from opsdrill.hosts.shell_link import Exchange, NoAnswer, ShellLink, short
from opsdrill.hosts.shell_sessions import open_session
from opsdrill.model.host import OUTPUT_LIMIT, ChangedFile, Command, HostAnswer, HostFacts

_RETRY_AFTER = (0.5, 1.0, 2.0)
"""Seconds before a host without a shell is asked again."""
_START_SECONDS = 30.0
"""Seconds until a command is at work; its time limit counts from there."""
_FILE_SECONDS = 60.0
_SLOWEST = 50_000
"""Bytes a second at which a file may crawl."""
_KILL_SECONDS = 20.0
"""Seconds after which killing gives up."""
_AFTER_KILL_SECONDS = 1.0
"""Seconds from a killing to the end of the command's exchange."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What became of one attempt: a status, a time-out, or neither and `reason` says why."""

    exchange: Exchange | None = None
    status: int | None = None
    shell: str | None = None
    timed_out: bool = False
    dropped: bool = False
    reason: str | None = None
    again: bool = False
    """The command was never read, so that it can be tried again."""


class ShellHost:
    """A host while a run has it.

    Args:
        facts: what it is made of.
        link: the way to it.
        uid: who runs there when nobody was asked for.
        stays: as of `opsdrill.hosts.command.run_line`.
    """

    def __init__(
        self, facts: HostFacts, link: ShellLink, uid: int = 0, *, stays: bool = False
    ) -> None:
        self._facts = facts
        self._link = link
        self._uid = uid
        self._stays = stays
        self._root: Account | None = None
        self._last_answered_at: datetime | None = None

    @property
    def facts(self) -> HostFacts:
        return self._facts

    async def run(self, command: Command) -> HostAnswer:
        started = datetime.now(UTC)
        outcome = await self._attempt(command)
        for pause in _RETRY_AFTER:
            if not outcome.again:
                break
            await asyncio.sleep(pause)
            outcome = await self._attempt(command)
        answer = self._answer(command, outcome, started)
        if answer.unreachable is None:
            self._last_answered_at = answer.ended_at
        return answer

    async def open(self, request: SessionRequest) -> Session:
        return await open_session(self._facts.name, self._link, self._account, request)

    async def put(
        self, path: str, content: bytes, *, mode: int | None = 0o644, owner: str | None = "root"
    ) -> None:
        self._check(path)
        nonce = next_nonce()
        line = put_line(nonce, path, len(content), mode, owner)
        done = await self._file(nonce, line.encode() + content, OUTPUT_LIMIT)
        if done.end is None or done.end.status != 0:
            raise HostError(self._facts.name, f"cannot write {path}: {_complaint(done, owner)}")

    async def get(self, path: str, *, limit: int = 1024 * 1024) -> bytes:
        self._check(path)
        nonce = next_nonce()
        done = await self._file(nonce, get_line(nonce, path, limit).encode(), limit)
        status = done.end.status if done.end is not None else None
        if status == 0:
            return done.out.content
        if status == MISSING:
            raise FileNotFoundError(path)
        reason = "it is no regular file" if status == NOT_REGULAR else _complaint(done)
        raise HostError(self._facts.name, f"cannot read {path}: {reason}")

    async def mark(self) -> None:
        """Nothing is noted: a driver that can tell what changed says how."""

    async def changed(self) -> tuple[ChangedFile, ...] | None:
        return None

    async def _attempt(self, command: Command) -> _Outcome:
        if "\0" in command.run:
            # No shell can take it; cut there, it would be another command.
            return _Outcome(reason="the command has a NUL character, which is no text")
        nonce, mark = next_nonce(), next_mark()
        try:
            account = await self._account(command.user)
            line = run_line(nonce, mark, account, stays=self._stays)
            # A lone surrogate has no bytes of its own; everything else arrives as written.
            text = line + (command.run or "\n")
            exchange = await self._link.exchange(nonce, text.encode(errors="surrogatepass"))
        except NoAnswer as error:
            return _Outcome(reason=error.reason, again=error.passing)
        except NoAccount as error:
            return _Outcome(reason=str(error))
        limit = _START_SECONDS
        try:
            async with asyncio.timeout(limit):
                await exchange.begun.wait()
            limit = command.timeout
            async with asyncio.timeout(limit):
                await exchange.over.wait()
        except TimeoutError:
            return await self._timed_out(limit, exchange, mark)
        except asyncio.CancelledError:
            with suppress(NoAnswer):
                await self._surely_end(exchange, mark)
            raise
        return await self._over(exchange, mark)

    async def _over(self, exchange: Exchange, mark: int) -> _Outcome:
        end = exchange.end
        try:
            unread = await self._link.no_shell(exchange)
            if unread is not None:
                self._root = None
                return _Outcome(reason=unread, again=True)
            if end is not None:
                return _Outcome(exchange, status=end.status, shell=end.shell)
            # Whatever is left of it would work on behind our back.
            await self._kill(mark)
        except NoAnswer as error:
            if not exchange.err.started:
                return _Outcome(reason=error.reason, again=error.passing)
            return _Outcome(exchange, reason=f"it was lost half way: {error.reason}")
        if exchange.killed:
            reason = "its shell was killed"
            return _Outcome(exchange, status=137, shell=self._facts.shell, reason=reason)
        reason = "the shell behind it ended half way; the host answers again"
        return _Outcome(exchange, dropped=True, reason=reason)

    async def _timed_out(self, seconds: float, exchange: Exchange, mark: int) -> _Outcome:
        begun = exchange.begun.is_set()
        limit = f"{seconds:g} s"
        try:
            left = await self._surely_end(exchange, mark)
        except NoAnswer as error:
            reason = f"no end within {limit}, and then no answer: {error.reason}"
            return _Outcome(exchange, reason=reason)
        if not begun:
            return _Outcome(exchange, reason=f"the command did not start within {limit}")
        more = f"; {left} processes could not be killed" if left else ""
        reason = f"killed after {limit} with everything it started{more}"
        shell = exchange.end.shell if exchange.end is not None else None
        return _Outcome(exchange, shell=shell, timed_out=True, reason=reason)

    async def _surely_end(self, exchange: Exchange, mark: int) -> int:
        """The same as `_end`, to its end even if whoever waits is cancelled; twice is enough."""
        ending = asyncio.ensure_future(self._end(exchange, mark))
        ending.add_done_callback(_seen)
        try:
            return await asyncio.shield(ending)
        except asyncio.CancelledError:
            await asyncio.wait([ending])
            raise

    async def _end(self, exchange: Exchange, mark: int) -> int:
        """Kill a command with everything it started; how many processes are left.

        Raises:
            NoAnswer: the host does not answer.
        """
        try:
            end = time.monotonic() + _KILL_SECONDS
            left = await self._kill(mark)
            # The shell behind it may only now come to start it, or was itself the first to go.
            while not exchange.over.is_set() and time.monotonic() < end:
                try:
                    async with asyncio.timeout(_AFTER_KILL_SECONDS):
                        await exchange.over.wait()
                except TimeoutError:
                    left = await self._kill(mark)
        finally:
            exchange.abandon()
        return left

    async def _kill(self, mark: int) -> int:
        nonce = next_nonce()
        done = await self._link.talk(nonce, kill_line(nonce, mark).encode(), urgent=True)
        return done.end.status if done.end is not None else 0

    async def _account(self, user: str) -> Account:
        """How to become a user there.

        Raises:
            NoAnswer: the host does not answer.
            NoAccount: there is none.
        """
        if user == "root" and self._root is not None:
            return self._root
        if not user or user.startswith("-") or any(char in user for char in ":\0\n/"):
            raise NoAccount(f"{user!r} is no name of a user")
        nonce = next_nonce()
        asked = await self._link.talk(nonce, ask_line(nonce, account_text(user)).encode())
        account = parse_account(user, asked.out.text, self._uid)
        # Others may be removed and made again, with another number.
        if user == "root":
            self._root = account
        return account

    async def _file(self, nonce: str, content: bytes, limit: int) -> Exchange:
        """Have a line about a file do its work.

        Raises:
            HostUnreachable: the host does not answer.
        """
        seconds = _FILE_SECONDS + (len(content) + limit) / _SLOWEST
        try:
            return await self._link.talk(
                nonce, content, seconds=seconds, limit=max(limit, OUTPUT_LIMIT)
            )
        except NoAnswer as error:
            raise HostUnreachable(
                self._facts.name, f"does not answer: {error.reason}", hint=error.hint
            ) from None

    def _answer(self, command: Command, outcome: _Outcome, started: datetime) -> HostAnswer:
        no_answer = outcome.status is None and not outcome.timed_out and not outcome.dropped
        out = outcome.exchange.out if outcome.exchange is not None else None
        err = outcome.exchange.err if outcome.exchange is not None else None
        return HostAnswer(
            on=self._facts.name,
            run=command.run,
            exit_code=outcome.status,
            timed_out=True if outcome.timed_out else None,
            unreachable=True if no_answer else None,
            dropped=True if outcome.dropped else None,
            stdout=out.text if out is not None else "",
            stderr=err.text if err is not None else "",
            stdout_bytes=out.full_size if out is not None else None,
            stderr_bytes=err.full_size if err is not None else None,
            shell=outcome.shell,
            user=command.user,
            timeout=command.timeout,
            reason=outcome.reason,
            last_answered_at=self._last_answered_at,
            started_at=started,
            ended_at=datetime.now(UTC),
        )

    def _check(self, path: str) -> None:
        size = len(path.encode(errors="replace"))
        broken = not path.startswith("/") or path.endswith("/") or "\0" in path or size > 4000
        if broken or path.encode(errors="replace").decode() != path:
            raise HostError(self._facts.name, f"{path!r} is no absolute path of a file")


def _seen(ending: asyncio.Future[int]) -> None:
    # Nobody may be left to hear that the host does not answer.
    if not ending.cancelled():
        ending.exception()


def _complaint(done: Exchange, owner: str | None = None) -> str:
    """The last thing that a line about a file said on standard error."""
    said = short(done.err.text.strip().rpartition("\n")[2])
    if owner is not None and ("invalid" in said or "unknown" in said):
        return f"there is no owner {owner} ({said})"
    return said or "it did not say why"
