"""One sandbox host, as a run sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from opsdrill.errors import HostError, HostUnreachable
from opsdrill.hosts.drivers.sandbox.changes import Files, compare, parse
from opsdrill.hosts.drivers.sandbox.link import Exchange, Link
from opsdrill.hosts.drivers.sandbox.messages import (
    Done,
    Ended,
    Failed,
    GetFile,
    PutFile,
    RunCommand,
    Snapshot,
    Stop,
    TimedOut,
    memory,
    read_memory_file,
)
from opsdrill.hosts.drivers.sandbox.opening import open_session
from opsdrill.hosts.drivers.sandbox.output import Output
from opsdrill.hosts.drivers.sandbox.session import SandboxSession
from opsdrill.hosts.session import SessionRequest
from opsdrill.model.host import ChangedFile, Command, HostAnswer, HostFacts

_RETRY_AFTER = (0.5, 1.0, 2.0)
"""Seconds before a host without a shell is asked again."""
_GRACE = 20.0
"""Seconds past a command's limit in which its end must be reported."""
_FILE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What became of one attempt; `lost` says that the answer got lost on the way."""

    end: Ended | TimedOut | Failed
    shell: str | None = None
    lost: bool = False
    stdout: str = ""
    stderr: str = ""
    stdout_bytes: int | None = None
    stderr_bytes: int | None = None


class SandboxHost:
    """A host while a run has it.

    Args:
        host: its id at the fork server.
        facts: what it is made of.
        link: the fork server that made it.
    """

    def __init__(self, host: str, facts: HostFacts, link: Link) -> None:
        self.id = host
        self._facts = facts
        self._link = link
        self._marked: Files | None = None
        self._last_answered_at: datetime | None = None

    @property
    def facts(self) -> HostFacts:
        return self._facts

    async def run(self, command: Command) -> HostAnswer:
        started = datetime.now(UTC)
        outcome = await self._attempt(command)
        for pause in _RETRY_AFTER:
            if not (isinstance(outcome.end, Failed) and outcome.end.kind == "shell"):
                break
            await asyncio.sleep(pause)
            outcome = await self._attempt(command)
        dropped = outcome.lost and await self._still_answers()
        answer = self._answer(command, outcome, started, dropped=dropped)
        if answer.unreachable is None:
            self._last_answered_at = answer.ended_at
        return answer

    async def open(self, request: SessionRequest) -> SandboxSession:
        return await open_session(self._facts.name, self.id, self._link, request)

    async def put(
        self, path: str, content: bytes, *, mode: int | None = 0o644, owner: str | None = "root"
    ) -> None:
        self._check(path)
        with memory(content) as body:
            failed = await self._ask(PutFile(self.id, path, mode, owner), body)
        if failed is not None:
            raise HostError(self._facts.name, f"cannot write {path}: {failed.reason}")

    async def get(self, path: str, *, limit: int = 1024 * 1024) -> bytes:
        self._check(path)
        with memory() as body:
            failed = await self._ask(GetFile(self.id, path, limit), body)
            if failed is None:
                return read_memory_file(body)
        if failed.kind == "missing":
            raise FileNotFoundError(path)
        raise HostError(self._facts.name, f"cannot read {path}: {failed.reason}")

    async def mark(self) -> None:
        try:
            self._marked = await self._files()
        except HostError:
            self._marked = None

    async def changed(self) -> tuple[ChangedFile, ...] | None:
        if self._marked is None:
            return None
        return compare(self._marked, await self._files())

    async def _attempt(self, command: Command) -> _Outcome:
        if "\0" in command.run:
            # No shell can take it; cut there, it would be another command.
            return _Outcome(Failed("error", "the command has a NUL character, which is no text"))
        # A lone surrogate has no bytes of its own; everything else arrives as written.
        text = command.run.encode(errors="surrogatepass")
        with memory(text) as body, closing(Output()) as out, closing(Output()) as err:
            request = RunCommand(self.id, command.user, command.timeout)
            try:
                exchange = await self._link.request(request, (body, out.writer, err.writer))
            except OSError:
                return _Outcome(Failed("gone", "the host is no more"))
            with exchange:
                for output in (out, err):
                    output.close_writer()
                    output.start()
                try:
                    drop = partial(self._link.drains.take, self.id)
                    return await _follow(exchange, command.timeout + _GRACE, out, err, drop)
                except asyncio.CancelledError:
                    await _stop(exchange)
                    raise

    async def _still_answers(self) -> bool:
        probe = await self._attempt(Command(run=":", timeout=5.0))
        return isinstance(probe.end, Ended)

    def _answer(
        self, command: Command, outcome: _Outcome, started: datetime, *, dropped: bool
    ) -> HostAnswer:
        end = outcome.end
        return HostAnswer(
            on=self._facts.name,
            run=command.run,
            exit_code=end.exit_code if isinstance(end, Ended) else None,
            timed_out=True if isinstance(end, TimedOut) else None,
            unreachable=True if isinstance(end, Failed) and not dropped else None,
            dropped=True if dropped else None,
            stdout=outcome.stdout,
            stderr=outcome.stderr,
            stdout_bytes=outcome.stdout_bytes,
            stderr_bytes=outcome.stderr_bytes,
            shell=outcome.shell,
            user=command.user,
            timeout=command.timeout,
            reason=_why(command, end),
            last_answered_at=self._last_answered_at,
            started_at=started,
            ended_at=datetime.now(UTC),
        )

    def _check(self, path: str) -> None:
        if not path.startswith("/") or "\0" in path or len(path.encode(errors="replace")) > 4000:
            raise HostError(self._facts.name, f"{path!r} is no absolute path of a file")

    async def _files(self) -> Files:
        with memory() as body:
            failed = await self._ask(Snapshot(self.id), body)
            if failed is not None:
                raise HostError(self._facts.name, failed.reason)
            return parse(read_memory_file(body))

    async def _ask(self, request: PutFile | GetFile | Snapshot, body: int) -> Failed | None:
        """Have something done; what went wrong comes back.

        Raises:
            HostUnreachable: the host does not answer.
        """
        reason = "does not answer"
        try:
            with await self._link.request(request, (body,)) as exchange:
                async with asyncio.timeout(_FILE_SECONDS):
                    came = await exchange.receive()
        except (OSError, TimeoutError):
            came = None
        if came is not None and isinstance(came[0], Done):
            return None
        if came is not None and isinstance(came[0], Failed) and came[0].kind != "gone":
            return came[0]
        raise HostUnreachable(self._facts.name, reason)


async def _follow(
    exchange: Exchange, patience: float, out: Output, err: Output, drop: Callable[[int], None]
) -> _Outcome:
    """Wait for the command's end and collect what it wrote; what is written later, `drop` reads."""
    end: Ended | TimedOut | Failed | None = None
    try:
        async with asyncio.timeout(patience):
            came = await exchange.receive()
        if came is not None and isinstance(came[0], Ended | TimedOut | Failed):
            end = came[0]
    except TimeoutError:
        end = None
    for pipe in (out.finish(), err.finish()):
        if isinstance(end, Ended) and pipe is not None:
            drop(pipe)
    return _Outcome(
        end or Failed("gone", "the answer got lost on the way"),
        None if end is None or isinstance(end, Failed) else end.shell,
        lost=end is None,
        stdout=out.text,
        stderr=err.text,
        stdout_bytes=out.full_size,
        stderr_bytes=err.full_size,
    )


async def _stop(exchange: Exchange) -> None:
    """Kill the command and wait until that is done; a second cancellation ends the waiting."""
    exchange.send(Stop())
    try:
        async with asyncio.timeout(_GRACE):
            while await exchange.receive() is not None:
                pass
    except TimeoutError:
        return


def _why(command: Command, end: Ended | TimedOut | Failed) -> str | None:
    if isinstance(end, Failed):
        return end.reason
    if isinstance(end, TimedOut):
        left = f"; {end.left} processes could not be killed" if end.left else ""
        return f"killed after {command.timeout:g} s with everything it started{left}"
    return None
