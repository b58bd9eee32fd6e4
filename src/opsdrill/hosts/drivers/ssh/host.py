"""One machine, as a run sees it."""

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
    Login,
    account_text,
    ask_line,
    direct_input,
    get_line,
    kill_line,
    next_mark,
    next_nonce,
    put_line,
)
from opsdrill.hosts.drivers.ssh.exchange import Exchange
from opsdrill.hosts.drivers.ssh.link import Link
from opsdrill.hosts.drivers.ssh.opening import Opening
from opsdrill.hosts.drivers.ssh.reasons import NoConnection, short
from opsdrill.hosts.drivers.ssh.residents import Residents
from opsdrill.hosts.drivers.ssh.session import SshSession
from opsdrill.hosts.look import NoAccount, parse_account
from opsdrill.hosts.session import SessionRequest
from opsdrill.model.host import OUTPUT_LIMIT, ChangedFile, Command, HostAnswer, HostFacts

_RETRY_AFTER = (0.5, 1.0, 2.0)
"""Seconds before a machine without a shell is asked again."""
_FILE_SECONDS = 60.0
_SLOWEST = 50_000
"""Bytes a second at which a file may crawl."""
_CLOSE_SECONDS = 0.1
"""Seconds from a shell's end after which its channel counts as held."""
_QUESTIONS = 3
_KILL_SECONDS = 20.0
"""Seconds after which killing gives up."""
_AFTER_KILL_SECONDS = 1.0
"""Seconds from a killing to the end of the command's channel."""


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


@dataclass(frozen=True, slots=True)
class _Way:
    """A user of the machine, and how commands become that user's."""

    account: Account
    entry: str
    before: bytes
    residents: Residents | None = None

    async def start(self, link: Link, nonce: str, mark: int, text: bytes) -> Exchange:
        """Start a command; arguments as of `direct_input`.

        Raises:
            NoConnection: says why.
        """
        if self.residents is not None and self.residents.worth():
            return await self.residents.exchange(nonce, mark, text)
        direct = direct_input(nonce, mark, self.account, text)
        return await link.exchange(self.entry, nonce, self.before + direct)


class SshHost:
    """A machine while a run has it.

    Args:
        facts: what it is made of.
        link: the connection to it.
        login: how it is spoken to.
        uid: who runs there.
    """

    def __init__(self, facts: HostFacts, link: Link, login: Login, uid: int) -> None:
        self._facts = facts
        self._link = link
        self._login = login
        self._lines = login.for_lines()
        self._uid = uid
        self._marks = "time limits" not in facts.limits
        self._staying: Residents | None = None
        self._ways: dict[str, _Way] = {}
        self._asking: dict[str, asyncio.Future[_Way]] = {}
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

    async def open(self, request: SessionRequest) -> SshSession:
        opening = Opening(self._facts.name, self._link, self._login)
        return await opening.open(request, self._account)

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
        """Nothing is noted: to look at all files of a machine takes minutes, and is no snapshot."""

    async def changed(self) -> tuple[ChangedFile, ...] | None:
        return None

    async def _attempt(self, command: Command) -> _Outcome:
        if "\0" in command.run:
            # No shell can take it; cut there, it would be another command.
            return _Outcome(reason="the command has a NUL character, which is no text")
        nonce, mark = next_nonce(), next_mark()
        try:
            way = await self._way(command.user)
            # A lone surrogate has no bytes of its own; everything else arrives as written.
            text = command.run.encode(errors="surrogatepass")
            exchange = await way.start(self._link, nonce, mark, text)
        except NoConnection as error:
            return _Outcome(reason=error.reason)
        except NoAccount as error:
            return _Outcome(reason=str(error))
        try:
            async with asyncio.timeout(command.timeout):
                await exchange.left.wait()
        except TimeoutError:
            return await self._timed_out(command, exchange, mark)
        except asyncio.CancelledError:
            with suppress(NoConnection):
                await self._surely_end(exchange, mark)
            raise
        return await self._over(exchange, mark, command.user)

    async def _over(self, exchange: Exchange, mark: int, user: str) -> _Outcome:
        """The far shell ended, or the connection did."""
        if not exchange.err.started:
            # Its end may be told before what it wrote.
            await self._last_words(exchange)
        if exchange.no_shell is not None:
            self._ways.pop(user, None)
            return _Outcome(reason=exchange.no_shell, again=True)
        try:
            if exchange.status is not None and exchange.err.started:
                await self._all_of(exchange)
                if not exchange.cut:
                    return _Outcome(exchange, status=exchange.status, shell=exchange.err.title)
            # Whatever is left of it would work on behind our back.
            await self._kill(mark)
        except NoConnection as error:
            return _Outcome(exchange, reason=f"the connection was lost half way; {error.reason}")
        return _Outcome(
            exchange,
            dropped=True,
            reason="the connection ended half way; the host answers again",
        )

    async def _all_of(self, exchange: Exchange) -> None:
        """Wait until everything came that a command wrote whose shell ended.

        Its channel closes then; but not while background processes hold it. What the command wrote
        is in a pipe on the machine; its SSH server, which serves one connection in turns, takes
        some of it in every turn, and a question takes several turns.

        Raises:
            NoConnection: nobody knows whether all of it came.
        """
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await exchange.over.wait()
        except TimeoutError:
            for _ in range(_QUESTIONS):
                await self._ask(":")
            exchange.finish()

    async def _timed_out(self, command: Command, exchange: Exchange, mark: int) -> _Outcome:
        limit = f"{command.timeout:g} s"
        try:
            left = await self._surely_end(exchange, mark)
        except NoConnection as error:
            reason = f"no end within {limit}, and then no answer: {error.reason}"
            return _Outcome(exchange, reason=reason)
        more = f"; {left} processes could not be killed" if left else ""
        reason = f"killed after {limit} with everything it started{more}"
        shell = exchange.err.title or None
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
            NoConnection: the machine does not answer.
        """
        end = time.monotonic() + _KILL_SECONDS
        left = await self._kill(mark)
        # The shell behind it may only now come to start it, or the channel was the first to go.
        while not exchange.left.is_set() and time.monotonic() < end:
            try:
                async with asyncio.timeout(_AFTER_KILL_SECONDS):
                    await exchange.left.wait()
            except TimeoutError:
                left = await self._kill(mark)
        await self._last_words(exchange)
        exchange.abandon()
        return left

    async def _last_words(self, exchange: Exchange) -> None:
        """What was written before the killing may still be on its way."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_AFTER_KILL_SECONDS):
                await exchange.over.wait()

    async def _kill(self, mark: int) -> int:
        nonce = next_nonce()
        line = kill_line(nonce, mark).encode()
        done = await self._link.talk(self._lines, nonce, line, urgent=True)
        return done.end.status if done.end is not None else 0

    async def _way(self, user: str) -> _Way:
        """How to become a user there; asked once, by whoever comes first.

        Raises:
            NoConnection: the machine does not answer.
            NoAccount: there is none.
        """
        known = self._ways.get(user)
        if known is not None:
            return known
        if user not in self._asking:
            asking = self._asking[user] = asyncio.ensure_future(self._find_way(user))
            asking.add_done_callback(lambda done: self._found(user, done))
        return await asyncio.shield(self._asking[user])

    async def _account(self, user: str) -> Account:
        return (await self._way(user)).account

    async def _find_way(self, user: str) -> _Way:
        if not user or user.startswith("-") or any(char in user for char in ":\0\n/"):
            raise NoAccount(f"{user!r} is no name of a user")
        asked = await self._ask(account_text(user))
        account = parse_account(user, asked.out.text, self._uid)
        return _Way(account, *self._login.for_command(account), self._residents(account))

    def _residents(self, account: Account) -> Residents | None:
        """Shells that stay, where they are as good as others: for root, with bash and marks."""
        plain = self._login.shell == "bash" and not self._login.sudo and self._facts.shell == "bash"
        if not plain or self._uid != 0 or account.become != "stay" or not self._marks:
            return None
        if self._staying is None or self._staying.account != account:
            self._staying = Residents(self._link, account)
            self._link.make_room = self._staying.give_back
        return self._staying

    def _found(self, user: str, asking: asyncio.Future[_Way]) -> None:
        # Only an answer is kept: a user that is not there may be made later.
        del self._asking[user]
        if not asking.cancelled() and asking.exception() is None:
            self._ways[user] = asking.result()

    async def _ask(self, text: str) -> Exchange:
        nonce = next_nonce()
        return await self._link.talk(self._lines, nonce, ask_line(nonce, text).encode())

    async def _file(self, nonce: str, content: bytes, limit: int) -> Exchange:
        """Have a line about a file do its work.

        Raises:
            HostUnreachable: the machine does not answer.
        """
        seconds = _FILE_SECONDS + (len(content) + limit) / _SLOWEST
        try:
            return await self._link.talk(
                self._lines, nonce, content, seconds=seconds, limit=max(limit, OUTPUT_LIMIT)
            )
        except NoConnection as error:
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
    # Nobody may be left to hear that the machine does not answer.
    if not ending.cancelled():
        ending.exception()


def _complaint(done: Exchange, owner: str | None = None) -> str:
    """The last thing that a line about a file said on standard error."""
    said = short(done.err.text.strip().rpartition("\n")[2])
    if owner is not None and ("invalid" in said or "unknown" in said):
        return f"there is no owner {owner} ({said})"
    return said or "it did not say why"
