"""A host that is spoken to by shell text, as a run sees it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from functools import partial

from opsdrill.errors import HostError, HostUnreachable
from opsdrill.hosts.attempt import Attempt, Outcome
from opsdrill.hosts.command import (
    MISSING,
    NOT_REGULAR,
    Account,
    account_text,
    ask_line,
    get_line,
    next_nonce,
    put_line,
)
from opsdrill.hosts.look import UNMARKED, NoAccount, parse_account
from opsdrill.hosts.session import Session, SessionRequest
from opsdrill.hosts.shell_link import Exchange, NoAnswer, ShellLink, short
from opsdrill.hosts.shell_sessions import open_session
from opsdrill.model.host import OUTPUT_LIMIT, ChangedFile, Command, HostAnswer, HostFacts

_RETRY_AFTER = (0.5, 1.0, 2.0)
"""Seconds before a host without a shell is asked again."""
_FILE_SECONDS = 60.0
_SLOWEST = 50_000
"""Bytes a second at which a file may crawl."""
_RELEASE_SECONDS = 20.0
"""Seconds in which what still runs must be killed when the host is given back."""


class ShellHost:
    """A host while a run has it.

    Args:
        facts: what it is made of.
        link: the way to it.
        uid: who runs there when nobody was asked for.
    """

    def __init__(self, facts: HostFacts, link: ShellLink, uid: int = 0) -> None:
        self._facts = facts
        self._link = link
        self._uid = uid
        self._marks = not UNMARKED.keys() & facts.limits.keys()
        self._accounts: dict[str, asyncio.Future[Account]] = {}
        self._trying: set[asyncio.Task[Outcome]] = set()
        self._given_back = asyncio.Event()
        self._last_answered_at: datetime | None = None

    @property
    def facts(self) -> HostFacts:
        return self._facts

    async def run(self, command: Command) -> HostAnswer:
        started = datetime.now(UTC)
        answer = self._answer(command, await self._outcome(command), started)
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

    async def release(self) -> None:
        """Kill the commands that still run, with all that they started; no other one is started.

        For hosts that last. It takes 20 seconds where the host does not answer. Never raises.
        """
        self._given_back.set()
        trying = tuple(self._trying)
        for task in trying:
            task.cancel()
        if trying:
            await asyncio.wait(trying, timeout=_RELEASE_SECONDS)

    async def _outcome(self, command: Command) -> Outcome:
        if self._given_back.is_set():
            return Outcome(reason="the host was given back")
        trying = asyncio.ensure_future(self._try(command))
        self._trying.add(trying)
        trying.add_done_callback(self._trying.discard)
        try:
            return await trying
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if not self._given_back.is_set() or (caller is not None and caller.cancelling()):
                raise
            return Outcome(reason="the host was given back before the command was over")

    async def _try(self, command: Command) -> Outcome:
        outcome = await self._attempt(command)
        for pause in _RETRY_AFTER:
            if not outcome.again:
                break
            await asyncio.sleep(pause)
            outcome = await self._attempt(command)
        return outcome

    async def _attempt(self, command: Command) -> Outcome:
        if "\0" in command.run:
            # No shell can take it; cut there, it would be another command.
            return Outcome(reason="the command has a NUL character, which is no text")
        try:
            account = await self._account(command.user)
        except NoAnswer as error:
            return Outcome(reason=error.reason, again=error.again)
        except NoAccount as error:
            return Outcome(reason=str(error))
        # A lone surrogate has no bytes of its own; everything else arrives as written.
        text = command.run.encode(errors="surrogatepass")
        attempt = Attempt(self._link, self._facts.shell, marks=self._marks)
        outcome = await attempt.outcome(account, text, command.timeout)
        if outcome.again:
            self._accounts.pop(command.user, None)
        return outcome

    async def _account(self, user: str) -> Account:
        """How to become a user there; asked once by all who want to know at the same time.

        Raises:
            NoAnswer: the host does not answer.
            NoAccount: there is none.
        """
        known = self._accounts.get(user)
        if known is None:
            known = self._accounts[user] = asyncio.ensure_future(self._find_account(user))
            known.add_done_callback(partial(self._found, user))
        return await asyncio.shield(known)

    async def _find_account(self, user: str) -> Account:
        if not user or user.startswith("-") or any(char in user for char in ":\0\n/"):
            raise NoAccount(f"{user!r} is no name of a user")
        nonce = next_nonce()
        asked = await self._link.talk(nonce, ask_line(nonce, account_text(user)).encode())
        return parse_account(user, asked.out.text, self._uid)

    def _found(self, user: str, asking: asyncio.Future[Account]) -> None:
        # Only our own is kept: others may be removed and made again, with another number.
        if asking.cancelled() or asking.exception() or asking.result().become != "stay":
            self._accounts.pop(user, None)

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

    def _answer(self, command: Command, outcome: Outcome, started: datetime) -> HostAnswer:
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


def _complaint(done: Exchange, owner: str | None = None) -> str:
    """The last thing that a line about a file said on standard error."""
    said = short(done.err.text.strip().rpartition("\n")[2])
    if owner is not None and ("invalid" in said or "unknown" in said):
        return f"there is no owner {owner} ({said})"
    return said or "it did not say why"
