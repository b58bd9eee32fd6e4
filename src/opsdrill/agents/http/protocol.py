"""The protocol of agents that are services, `opsdrill.agent/1`.

Everything that a service sends is checked against these models and bounded; what does not fit is
the service's mistake.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints

from opsdrill.model.fields import HostName, Items, Recorded
from opsdrill.model.job import ToolKind, Usage
from opsdrill.model.rules import Resolution

BODY_LIMIT = 4 * 1024 * 1024
"""Bytes of any one body that a service sends."""
EVENTS_LIMIT = 100_000
"""Events of one job."""

Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$")]
Text = Annotated[str, Field(max_length=1_000_000)]
Word = Annotated[str, Field(max_length=200)]


class Planned(Recorded):
    """The plan, anew as often as it changes."""

    event: Literal["planned"]
    plan: Text


class Posted(Recorded):
    """A message to the ticket."""

    event: Literal["posted"]
    body: Text
    name: Word | None = None


class TaskCreated(Recorded):
    """A task for one host."""

    event: Literal["task_created"]
    task: Id
    host: HostName
    turn: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    """Tasks of the same number start together; left out, turns are told from the times."""
    agent: Word | None = None
    description: Text | None = None
    operational_rules: Items[Text] | None = None
    """The rules that the task was given; left out, it is not known."""


class TaskStarted(Recorded):
    event: Literal["task_started"]
    task: Id


class CommandRequested(Recorded):
    """Asks OpsDrill to run a command on the task's host; a `Result` is posted back."""

    event: Literal["command_requested"]
    task: Id
    call: Id
    command: Text
    timeout: Annotated[float, Field(gt=0, strict=False, allow_inf_nan=False)] | None = None
    """Seconds; the scenario's limit holds too."""


class ToolCalled(Recorded):
    """A tool of the service's own was called; `arguments` as in a job record."""

    event: Literal["tool_called"]
    task: Id
    call: Id
    kind: ToolKind
    tool: Word | None = None
    server: Word | None = None
    arguments: JsonValue = None


class ToolReturned(Recorded):
    event: Literal["tool_returned"]
    task: Id
    call: Id
    outcome: Literal["ran", "failed", "timed_out", "refused"]
    exit_code: Annotated[int, Field(ge=0, le=255)] | None = None
    output: Text | None = None


class Said(Recorded):
    """An answer of the agent that works on the task."""

    event: Literal["said"]
    task: Id
    text: Text


class Used(Recorded):
    """What was used up so far, by the task, or by the job outside its tasks."""

    event: Literal["used"]
    task: Id | None = None
    usage: Usage


class TaskEnded(Recorded):
    event: Literal["task_ended"]
    task: Id
    status: Literal["completed", "failed", "cancelled", "timed_out"]
    stop_reason: Text | None = None
    summary: Text | None = None


class Resolved(Recorded):
    event: Literal["resolved"]
    resolution: Resolution
    reasoning: Text | None = None


class JobEnded(Recorded):
    """The last event."""

    event: Literal["job_ended"]
    status: Literal["completed", "failed"] = "completed"
    reason: Text | None = None


ServiceEvent = Annotated[
    Planned | Posted | TaskCreated | TaskStarted | CommandRequested | ToolCalled | ToolReturned
    | Said | Used | TaskEnded | Resolved | JobEnded,
    Field(discriminator="event"),
]  # fmt: skip


class Greeting(Recorded):
    """What a service says of itself."""

    format: Literal["opsdrill.agent/1"]
    name: Word | None = None
    model: Word | None = None


class TicketMessage(Recorded):
    author: Literal["agent", "requester"]
    body: str


class Ticket(Recorded):
    title: str
    body: str
    messages: Items[TicketMessage] = ()


class JobOrder(Recorded):
    """A job for the service: all that an agent may know."""

    format: Literal["opsdrill.agent/1"]
    id: str
    """Names the job in every address. The same order may come again, where a reply got lost."""
    ticket: Ticket
    hosts: Items[str]
    operational_rules: Items[str]
    job_seconds: float
    command_seconds: float
    callback: str | None = None
    """Where events are posted, where they are not polled."""


class Events(Recorded):
    """The events from the number asked for on; empty when there are none yet."""

    events: Items[ServiceEvent]


class CallBack(Recorded):
    """Events posted by the service; `after` is the number of the first, from 0."""

    job: Id
    after: Annotated[int, Field(ge=0, le=EVENTS_LIMIT)]
    events: Items[ServiceEvent]


class Result(Recorded):
    """What became of a command that the service asked for."""

    task: str
    call: str
    outcome: Literal["ran", "failed", "timed_out", "refused"]
    exit_code: int | None = None
    """The exit status; none where the command did not end by itself."""
    stdout: str = ""
    stderr: str = ""
    reason: str | None = None
    """Why there is no exit status."""
