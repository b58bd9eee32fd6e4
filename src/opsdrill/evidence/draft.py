"""The job record in the making: takes one event after the other, refuses what cannot be."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from pydantic import ValidationError

from opsdrill.errors import EventRefused
from opsdrill.evidence.unfinished import INTERRUPTED, covered, outcome_of, status_of
from opsdrill.model.event import (
    Confirmed,
    Covered,
    Isolated,
    JobCreated,
    JobEnded,
    JobEvent,
    NoJob,
    Planned,
    Posted,
    Reported,
    Resolved,
    Said,
    TaskCreated,
    TaskEnded,
    TaskStarted,
    ToolCalled,
    ToolReturned,
    Used,
)
from opsdrill.model.job import AgentMessage, Coverage, Job, JobRecord, Seen, Stop, Task, ToolCall
from opsdrill.model.ticket import Ticket, TicketMessage


@dataclass(slots=True)
class _TaskDraft:
    """One task under way. `calls` holds every call by its id, in the order made."""

    created: TaskCreated
    started_at: datetime | None = None
    started: bool = False
    ended: TaskEnded | None = None
    calls: dict[str, ToolCall] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)
    messages: list[AgentMessage] = field(default_factory=list)
    used: Used | None = None


class Draft:
    """What the events so far tell.

    Args:
        ticket: the ticket as the agent got it; messages are added behind those it has.
    """

    def __init__(self, ticket: Ticket) -> None:
        self._ticket = ticket
        self._posted: list[TicketMessage] = list(ticket.messages)
        self._job: JobCreated | None = None
        self._no_job: NoJob | None = None
        self._ended: JobEnded | None = None
        self._plan: str | None = None
        self._resolved: Resolved | None = None
        self._used: Used | None = None
        self._isolation: Literal["namespaces", "none"] | None = None
        self._reported_by: str | None = None
        self._coverage = Coverage(default=Seen(state="whole", why="recorded live"))
        self._tasks: dict[str, _TaskDraft] = {}

    def check(self, event: JobEvent) -> None:
        """Make sure that an event can follow those before it.

        A ticket becomes a job once, or never. Everything but posts and coverage needs a job;
        a task is created once, starts once, works only from its start to its end, and ends
        once; a call has an id of its own in its task and returns once, also after its task
        ended. Usage may come late, and so may the word that a call was reported. Nothing follows
        the end of a job.

        Raises:
            EventRefused: it cannot.
        """
        why = self._against(event)
        if why is not None:
            raise EventRefused(event.event, why)

    def _against(self, event: JobEvent) -> str | None:
        if self._ended is not None:
            return "the job has ended"
        match event:
            case Posted() | Covered() | Isolated():
                return None
            case JobCreated() | NoJob():
                if self._job is not None:
                    return f"the ticket became the job {self._job.job!r:.80} already"
                if self._no_job is not None:
                    return "the ticket was said to become no job"
                return (
                    "a job needs an id" if isinstance(event, JobCreated) and not event.job else None
                )
            case _ if self._job is None:
                return "there is no job"
            case Planned() | Resolved() | JobEnded() | Reported() | Used(task=None):
                return None
            case TaskCreated():
                if not event.task or not event.host:
                    return "a task needs an id and a host"
                return (
                    f"there is a task {event.task!r:.80} already"
                    if event.task in self._tasks
                    else None
                )
            case _:
                return self._against_task(event)

    def _against_task(
        self,
        event: TaskStarted | ToolCalled | ToolReturned | Confirmed | Said | Used | TaskEnded,
    ) -> str | None:
        task = self._tasks.get(event.task or "")
        if task is None:
            return f"there is no task {event.task!r:.80}"
        match event:
            case Used():
                return None
            case Confirmed():
                call = task.calls.get(event.call)
                seen = call is not None and call.witness != "agent"
                return None if seen else f"the gateway saw no call {event.call!r:.80}"
            case ToolReturned():
                return (
                    None if event.call in task.open else f"no call {event.call!r:.80} is under way"
                )
            case _ if task.ended is not None:
                return f"the task {event.task!r:.80} has ended"
            case TaskStarted():
                return f"the task {event.task!r:.80} has started already" if task.started else None
            case TaskEnded():
                return None if event.status not in ("running", "pending") else "that is no end"
            case _ if not task.started:
                return f"the task {event.task!r:.80} has not started"
            case ToolCalled():
                if event.call in task.calls:
                    return f"the task {event.task!r:.80} has a call {event.call!r:.80} already"
                return _against_call(event)
            case _:
                return None

    def take(self, event: JobEvent) -> None:
        """Add an event that `check` let pass."""
        match event:
            case JobCreated():
                self._job = event
            case NoJob():
                self._no_job = event
            case Planned():
                self._plan = event.plan
            case Posted():
                message = TicketMessage(
                    at=event.at, author=event.author, body=event.body, name=event.name
                )
                self._posted.append(message)
            case Resolved():
                self._resolved = event
            case Covered():
                self._coverage = event.coverage
            case Isolated():
                self._isolation = event.isolation
            case Reported():
                self._reported_by = event.by
            case JobEnded():
                self._ended = event
            case Used(task=None):
                self._used = event
            case TaskCreated():
                self._tasks[event.task] = _TaskDraft(event)
            case _:
                _take(self._tasks[event.task or ""], event)

    def job_record(self) -> JobRecord:
        """The record of what was taken so far; what has no end yet counts as broken off."""
        return JobRecord(
            format="opsdrill.job/1",
            job=self._job_so_far(),
            no_job_reason=self._no_job_reason(),
            ticket=self._ticket.model_copy(update={"messages": tuple(self._posted)}),
            tasks=tuple(self._task(task) for task in self._tasks.values()),
            coverage=covered(
                self._coverage,
                interrupted=self._ended is None and self._no_job is None,
                unreturned={
                    task.calls[call].kind for task in self._tasks.values() for call in task.open
                },
            ),
            stop=self._stop(),
            isolation=self._isolation,
            reported_by=self._reported_by,
        )

    def _job_so_far(self) -> Job | None:
        if self._job is None:
            return None
        resolved = self._resolved
        return Job(
            id=self._job.job,
            status=self._ended.status if self._ended else "failed",
            resolution=resolved.resolution if resolved else None,
            resolution_reasoning=resolved.reasoning if resolved else None,
            resolution_source=resolved.source if resolved else None,
            plan=self._plan,
            created_at=self._job.at,
            ended_at=self._ended.at if self._ended else None,
            usage=self._used.usage if self._used else None,
        )

    def _no_job_reason(self) -> str | None:
        if self._job is not None:
            return None
        return self._no_job.reason if self._no_job else INTERRUPTED.reason

    def _stop(self) -> Stop | None:
        if self._ended is not None:
            reason, fault = self._ended.reason, self._ended.fault
            if reason is None and fault is None:
                return None
            return Stop(reason=reason or self._ended.status, fault=fault)
        if self._no_job is not None:
            return Stop(reason=self._no_job.reason, fault=self._no_job.fault)
        return INTERRUPTED

    def _task(self, task: _TaskDraft) -> Task:
        created, ended = task.created, task.ended
        stopped = self._ended.status if self._ended else None
        return Task(
            id=created.task,
            turn=created.turn,
            host=created.host,
            agent=created.agent,
            description=created.description,
            operational_rules=created.operational_rules,
            status=ended.status if ended else status_of(stopped, started=task.started),
            stop_reason=ended.stop_reason if ended else None,
            summary=ended.summary if ended else None,
            started_at=task.started_at,
            ended_at=ended.at if ended else None,
            tool_calls=tuple(
                call.model_copy(update={"outcome": outcome_of(stopped)})
                if id in task.open
                else call
                for id, call in task.calls.items()
            ),
            messages=tuple(task.messages),
            usage=task.used.usage if task.used else None,
        )


def _take(
    task: _TaskDraft,
    event: TaskStarted | ToolCalled | ToolReturned | Confirmed | Said | Used | TaskEnded,
) -> None:
    match event:
        case TaskStarted():
            task.started, task.started_at = True, event.at
        case ToolCalled():
            task.calls[event.call] = _call(event)
            task.open.add(event.call)
        case ToolReturned():
            task.open.remove(event.call)
            task.calls[event.call] = task.calls[event.call].model_copy(
                update={
                    "outcome": event.outcome,
                    "exit_code": event.exit_code,
                    "output": event.output,
                    "ended_at": event.at,
                }
            )
        case Confirmed():
            call = task.calls[event.call]
            task.calls[event.call] = call.model_copy(update={"witness": "both"})
        case Said():
            task.messages.append(AgentMessage(at=event.at, text=event.text))
        case Used():
            task.used = event
        case TaskEnded():
            task.ended = event


def _call(event: ToolCalled) -> ToolCall:
    return ToolCall(
        id=event.call,
        kind=event.kind,
        tool=event.tool,
        server=event.server,
        arguments=event.arguments,
        outcome="failed",
        started_at=event.at,
        witness=event.witness,
    )


def _against_call(event: ToolCalled) -> str | None:
    try:
        _call(event)
    except ValidationError as error:
        return f"a call of this kind {error.errors(include_url=False)[0]['msg']}"
    return None
