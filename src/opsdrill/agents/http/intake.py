"""What a service tells: its events go to the recorder, the commands it asks for to the hosts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from opsdrill.agents.adapter import Assignment
from opsdrill.agents.deny import DenyList
from opsdrill.agents.http import protocol
from opsdrill.agents.http.client import ProtocolBroken
from opsdrill.agents.task import TaskWork
from opsdrill.errors import EventRefused
from opsdrill.evidence.recorder import Recorder
from opsdrill.model import event as told
from opsdrill.model.host import HostAnswer
from opsdrill.model.lab import ROOT

AT_ONCE = 32
"""Commands of one job that run at the same time; further ones wait."""

Answer = Callable[[protocol.Result], Awaitable[None]]


class Intake:
    """Takes the events of one job.

    Args:
        assignment: the hosts, and the limits of commands.
        recorder: what is told is recorded there.
        deny: commands that are refused.
        answer: gives the service what became of a command.

    Attributes:
        ended: the service said that the job has ended.
        broken: what went wrong where a result was to be given; None while nothing did.
    """

    def __init__(
        self, assignment: Assignment, recorder: Recorder, deny: DenyList, answer: Answer
    ) -> None:
        self._given = assignment
        self._recorder = recorder
        self._deny = deny
        self._answer = answer
        self._works: dict[str, TaskWork] = {}
        self._open: dict[str, set[str]] = {}
        self._running: dict[asyncio.Task[None], str] = {}
        self.ended = False
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def take(self, event: protocol.ServiceEvent) -> None:
        """Record one event, and do what it asks for.

        Raises:
            ProtocolBroken: it cannot follow those before it.
        """
        if self.ended:
            raise ProtocolBroken("an event came after job_ended")
        try:
            await self._take(event)
        except EventRefused as error:
            raise ProtocolBroken(error.message) from error

    async def close(self) -> None:
        """End every command, and report every call and every task as ended."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._running.clear()
        if self.failed.done():
            self.failed.exception()
        for task_id, calls in self._open.items():
            for call in sorted(calls):
                self._recorder.record(
                    told.ToolReturned(
                        task=task_id, call=call, outcome="failed", output="stopped before it ended"
                    )
                )
        self._open.clear()
        for work in self._works.values():
            work.cut_short()

    async def _take(self, event: protocol.ServiceEvent) -> None:
        match event:
            case protocol.TaskCreated():
                self._create(event)
            case protocol.CommandRequested():
                await self._request(event)
            case protocol.TaskEnded():
                await self._settled(event.task)
                self._task(event.task).end(event.status, event.stop_reason, event.summary)
            case protocol.JobEnded():
                await self._settled(None)
                self.ended = True
                await self.close()
                self._recorder.record(
                    told.JobEnded(
                        status=event.status,
                        reason=event.reason,
                        fault="agent" if event.status == "failed" else None,
                    )
                )
            case protocol.ToolCalled():
                call = f"own-{event.call}"
                fields = event.model_dump(exclude={"event", "call"})
                self._recorder.record(told.ToolCalled(call=call, **fields))
                self._open.setdefault(event.task, set()).add(call)
            case protocol.ToolReturned():
                call = f"own-{event.call}"
                fields = event.model_dump(exclude={"event", "call"})
                self._recorder.record(told.ToolReturned(call=call, **fields))
                self._open[event.task].discard(call)
            case _:
                self._recorder.record(_plain(event))

    def _create(self, event: protocol.TaskCreated) -> None:
        host = self._given.hosts.get(event.host)
        if host is None:
            raise ProtocolBroken(f"task_created: there is no host {event.host}")
        self._recorder.record(told.TaskCreated(**event.model_dump(exclude={"event"})))
        self._works[event.task] = TaskWork(
            self._recorder,
            event.task,
            event.host,
            host,
            self._given.command_seconds,
            user=self._given.users.get(event.host, ROOT),
        )
        self._open[event.task] = set()

    def _task(self, id: str) -> TaskWork:
        work = self._works.get(id)
        if work is None:
            raise ProtocolBroken(f"there is no task {id}")
        return work

    async def _request(self, event: protocol.CommandRequested) -> None:
        """Begin a command; where too many run already, as soon as one of them has ended."""
        work = self._task(event.task)
        if "\0" in event.command:
            raise ProtocolBroken("command_requested: a command cannot hold a NUL character")
        while len(self._running) >= AT_ONCE:
            await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
            self._gone()
        why = await self._deny.refuses(event.command)
        doing = asyncio.create_task(self._do(work, event, why))
        self._running[doing] = event.task
        doing.add_done_callback(self._seen)
        await asyncio.sleep(0)  # its call is recorded before the next event is looked at

    async def _do(self, work: TaskWork, event: protocol.CommandRequested, why: str | None) -> None:
        if why is not None:
            arguments = {"command": event.command}
            work.played("shell", "shell", {**arguments}, "refused", output=why)
            result = protocol.Result(
                task=event.task, call=event.call, outcome="refused", reason=why
            )
        else:
            limit = self._given.command_seconds
            answer = await work.run(event.command, seconds=min(event.timeout or limit, limit))
            result = _result(event, answer)
        await self._answer(result)

    def _seen(self, doing: asyncio.Task[None]) -> None:
        """A command whose result could not be given stops the job."""
        if doing.cancelled() or self.failed.done():
            return
        error = doing.exception()
        if isinstance(error, EventRefused):
            error = ProtocolBroken(error.message)
        if error is not None:
            self.failed.set_exception(error)

    def _gone(self) -> None:
        for doing in [doing for doing in self._running if doing.done()]:
            del self._running[doing]

    async def _settled(self, task: str | None) -> None:
        """Wait for the commands of a task, or of all, to have ended."""
        waited = [doing for doing, of in self._running.items() if task is None or of == task]
        if waited:
            await asyncio.wait(waited)
        self._gone()


def _plain(event: protocol.ServiceEvent) -> told.JobEvent:
    """An event that is recorded as it is."""
    fields = event.model_dump(exclude={"event"})
    match event:
        case protocol.Planned():
            return told.Planned(**fields)
        case protocol.Posted():
            return told.Posted(author="agent", **fields)
        case protocol.TaskStarted():
            return told.TaskStarted(**fields)
        case protocol.Said():
            return told.Said(**fields)
        case protocol.Used():
            return told.Used(task=event.task, usage=event.usage)
        case protocol.Resolved():
            return told.Resolved(**fields)
        case _:
            raise ProtocolBroken(f"{event.event} is not expected here")


def _result(event: protocol.CommandRequested, answer: HostAnswer) -> protocol.Result:
    ran = answer.exit_code is not None
    return protocol.Result(
        task=event.task,
        call=event.call,
        outcome="ran" if ran else "timed_out" if answer.timed_out else "failed",
        exit_code=answer.exit_code,
        stdout=answer.stdout,
        stderr=answer.stderr,
        reason=None if ran else answer.reason,
    )
