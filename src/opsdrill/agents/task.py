"""One task under way: what is done on its host, reported as it begins and as it ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from opsdrill.errors import HostError, HostUnreachable
from opsdrill.evidence.cut import as_given
from opsdrill.hosts.driver import Host
from opsdrill.model.event import (
    JobEvent,
    Said,
    TaskCreated,
    TaskEnded,
    TaskStarted,
    ToolCalled,
    ToolReturned,
    Used,
)
from opsdrill.model.host import Command, HostAnswer
from opsdrill.model.job import Outcome, TaskStatus, ToolKind, Usage

EDIT_LIMIT = 8 * 1024 * 1024
"""Bytes of a file that can be edited."""


class Reports(Protocol):
    """Takes the events; the recorder is one."""

    def record(self, event: JobEvent) -> None: ...


@dataclass(slots=True)
class Returned:
    """What a tool call returns, until it does: a call that is cut short has failed."""

    outcome: Outcome = "failed"
    exit_code: int | None = None
    output: str | None = "stopped before it ended"


class TaskWork:
    """Does one task's work on one host. Every call it reports as begun it reports as returned.

    Args:
        reports: where events go.
        id: the task's id.
        name: the name of the host it works on.
        host: that host.
        seconds: the time limit of a command that has none of its own.
        user: who commands run as that name nobody.

    Attributes:
        silent: why the host was found not to answer; None while it answers.
        ended: the end was reported.
    """

    def __init__(
        self,
        reports: Reports,
        id: str,
        name: str,
        host: Host,
        seconds: float,
        *,
        user: str = "root",
    ) -> None:
        self._reports = reports
        self._id = id
        self._name = name
        self._host = host
        self._seconds = seconds
        self._user = user
        self._calls = 0
        self.silent: str | None = None
        self.ended = False

    def create(
        self,
        turn: int,
        description: str | None,
        operational_rules: Sequence[str],
        agent: str | None = None,
    ) -> None:
        """The task is there, though it does not work yet."""
        self._reports.record(
            TaskCreated(
                task=self._id,
                host=self._name,
                turn=turn,
                agent=agent,
                description=description,
                operational_rules=tuple(operational_rules),
            )
        )

    def start(self) -> None:
        self._reports.record(TaskStarted(task=self._id))

    def end(
        self, status: TaskStatus, stop_reason: str | None = None, summary: str | None = None
    ) -> None:
        self.ended = True
        self._reports.record(
            TaskEnded(task=self._id, status=status, stop_reason=stop_reason, summary=summary)
        )

    def cut_short(self) -> None:
        """Make sure that the end is reported: a task that has none yet was stopped."""
        if not self.ended:
            self.end("cancelled", "stopped before its end")

    @contextmanager
    def crash_reported(self) -> Iterator[None]:
        """An exception in here, a cancellation apart, ends the task as failed and goes on up."""
        try:
            yield
        except Exception as error:
            if not self.ended:
                self.end("failed", "the agent crashed", f"{type(error).__name__}: {error}")
            raise

    def say(self, text: str) -> None:
        """An answer of the agent."""
        self._reports.record(Said(task=self._id, text=text))

    async def run(
        self, command: str, *, user: str | None = None, seconds: float | None = None
    ) -> HostAnswer:
        """Run a command on the host; whatever became of it is an answer."""
        with self.call("shell", "shell", {"command": command}) as returned:
            answer = await self._host.run(
                Command(run=command, user=user or self._user, timeout=seconds or self._seconds)
            )
            returned.outcome = _outcome(answer)
            returned.exit_code = answer.exit_code
            returned.output = output_of(answer)
        if answer.unreachable:
            self.silent = answer.reason or "the host does not answer"
        return answer

    async def read(self, path: str) -> bytes | str:
        """The first `EDIT_LIMIT` bytes of a file, or a text that says why it cannot be read."""
        with self.call("other", "read_file", {"path": path}) as returned:
            read = await self._read(path, EDIT_LIMIT)
            returned.outcome = "failed" if isinstance(read, str) else "ran"
            returned.output = read if isinstance(read, str) else read.decode(errors="replace")
        return read

    async def write(self, path: str, content: str, mode: str | None = None) -> str | None:
        """Write a file; why it could not be done, or None.

        Without a `mode` a file that exists keeps its own.
        """
        arguments: dict[str, JsonValue] = {"path": path, "content": content}
        if mode is not None:
            arguments["mode"] = mode
        with self.call("write_file", "write_file", arguments) as returned:
            returned.output = await self._put(path, content.encode(errors="replace"), mode)
            returned.outcome = "ran" if returned.output is None else "failed"
        return returned.output

    async def update(self, path: str, old: str, new: str) -> str | None:
        """Put `new` in the place of `old`, which must occur exactly once in the file.

        Returns why it could not be done, or None.
        """
        arguments: dict[str, JsonValue] = {"path": path, "old": old, "new": new}
        with self.call("update_file", "update_file", arguments) as returned:
            returned.output = await self._edit(path, old.encode(), new.encode(errors="replace"))
            returned.outcome = "ran" if returned.output is None else "failed"
        return returned.output

    def played(
        self,
        kind: ToolKind,
        tool: str,
        arguments: JsonValue,
        outcome: Outcome,
        *,
        server: str | None = None,
        output: str | None = None,
    ) -> None:
        """Report a call that nothing ran for."""
        with self.call(kind, tool, arguments, server) as returned:
            returned.outcome, returned.output = outcome, output

    def used(self, usage: Usage) -> None:
        """What the task's model used up so far."""
        self._reports.record(Used(task=self._id, usage=usage))

    @contextmanager
    def call(
        self, kind: ToolKind, tool: str, arguments: JsonValue, server: str | None = None
    ) -> Iterator[Returned]:
        """A call that begins here and returns at the end of the block, with what it was given."""
        self._calls += 1
        call = f"{self._id}.{self._calls}"
        self._reports.record(
            ToolCalled(
                task=self._id, call=call, kind=kind, tool=tool, server=server, arguments=arguments
            )
        )
        returned = Returned()
        try:
            yield returned
        finally:
            self._reports.record(
                ToolReturned(
                    task=self._id,
                    call=call,
                    outcome=returned.outcome,
                    exit_code=returned.exit_code,
                    output=returned.output,
                )
            )

    async def _edit(self, path: str, old: bytes, new: bytes) -> str | None:
        """Edit a file; why it could not be done, or None."""
        content = await self._read(path, EDIT_LIMIT + 1)
        if isinstance(content, str):
            return content
        if len(content) > EDIT_LIMIT:
            return f"{path} has more than {EDIT_LIMIT} bytes"
        first = content.find(old)
        if first < 0:
            return f"the text to replace does not occur in {path}"
        if content.find(old, first + 1) >= 0:
            return f"the text to replace occurs more than once in {path}"
        return await self._put(path, content[:first] + new + content[first + len(old) :], None)

    async def _read(self, path: str, limit: int) -> bytes | str:
        """The first bytes of a file, or why it cannot be read."""
        try:
            return await self._host.get(path, limit=limit)
        except FileNotFoundError:
            return f"there is no file {path}"
        except HostError as error:
            return self._failed(error)

    async def _put(self, path: str, content: bytes, mode: str | None) -> str | None:
        """Write a file; why it could not be done, or None."""
        try:
            await self._host.put(
                path, content, mode=None if mode is None else int(mode, 8), owner=None
            )
        except HostError as error:
            return self._failed(error)
        return None

    def _failed(self, error: HostError) -> str:
        if isinstance(error, HostUnreachable):
            self.silent = error.message
        return error.message


def _outcome(answer: HostAnswer) -> Outcome:
    if answer.exit_code is not None:
        return "ran"
    return "timed_out" if answer.timed_out else "failed"


def output_of(answer: HostAnswer) -> str:
    """Standard output, then standard error, then why there is no exit status."""
    parts = [
        as_given(answer.stdout, answer.stdout_bytes),
        as_given(answer.stderr, answer.stderr_bytes),
        answer.reason if answer.exit_code is None else None,
    ]
    return "\n".join(part.rstrip("\n") for part in parts if part)
