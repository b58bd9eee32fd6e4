"""What an adapter reports while the agent works; the recorder makes the job record of it.

Times are optional: the recorder stamps an event that has none with the moment it arrived.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue, TypeAdapter

from opsdrill.errors import Fault
from opsdrill.model.fields import Instant, Items, Recorded
from opsdrill.model.job import (
    Coverage,
    JobStatus,
    Outcome,
    ResolutionSource,
    TaskStatus,
    ToolKind,
    Usage,
    Witness,
)
from opsdrill.model.rules import Resolution
from opsdrill.model.ticket import Author


class _Event(Recorded):
    at: Instant | None = None


class JobCreated(_Event):
    """The ticket became a job."""

    event: Literal["job_created"] = "job_created"
    job: str


class NoJob(_Event):
    """The ticket never became a job."""

    event: Literal["no_job"] = "no_job"
    reason: str
    fault: Fault | None = None


class Planned(_Event):
    """The job's plan."""

    event: Literal["planned"] = "planned"
    plan: str


class Posted(_Event):
    """A message on the ticket."""

    event: Literal["posted"] = "posted"
    author: Author
    body: str
    name: str | None = None


class TaskCreated(_Event):
    event: Literal["task_created"] = "task_created"
    task: str
    host: str
    turn: int | None = None
    agent: str | None = None
    description: str | None = None
    operational_rules: Items[str] | None = None


class TaskStarted(_Event):
    event: Literal["task_started"] = "task_started"
    task: str


class ToolCalled(_Event):
    """A tool call began. Reported again by `ToolReturned` under the same `call`."""

    event: Literal["tool_called"] = "tool_called"
    task: str
    call: str
    kind: ToolKind
    tool: str | None = None
    server: str | None = None
    arguments: JsonValue = None
    witness: Witness = "agent"


class ToolReturned(_Event):
    event: Literal["tool_returned"] = "tool_returned"
    task: str
    call: str
    outcome: Outcome
    exit_code: int | None = None
    output: str | None = None


class Confirmed(_Event):
    """A call that the gateway saw is in the agent's own report too."""

    event: Literal["confirmed"] = "confirmed"
    task: str
    call: str


class Said(_Event):
    """An answer or response of the agent."""

    event: Literal["said"] = "said"
    task: str
    text: str


class Used(_Event):
    """What was used up so far: by a task, or by the job outside its tasks (a planner)."""

    event: Literal["used"] = "used"
    task: str | None
    usage: Usage


class TaskEnded(_Event):
    event: Literal["task_ended"] = "task_ended"
    task: str
    status: TaskStatus
    stop_reason: str | None = None
    summary: str | None = None


class Resolved(_Event):
    event: Literal["resolved"] = "resolved"
    resolution: Resolution | None
    reasoning: str | None = None
    source: ResolutionSource = "agent"


class JobEnded(_Event):
    event: Literal["job_ended"] = "job_ended"
    status: JobStatus
    reason: str | None = None
    fault: Fault | None = None


class Reported(_Event):
    """The agent's own report was read, and held against what the gateway saw."""

    event: Literal["reported"] = "reported"
    by: str
    """The program that wrote it."""


class Isolated(_Event):
    """How far the agent was kept apart from the machine that it ran on."""

    event: Literal["isolated"] = "isolated"
    isolation: Literal["namespaces", "none"]


class Covered(_Event):
    """What this adapter can know; without it the recorder says `whole`, for it saw everything."""

    event: Literal["covered"] = "covered"
    coverage: Coverage


JobEvent = Annotated[
    JobCreated | NoJob | Planned | Posted | TaskCreated | TaskStarted | ToolCalled | ToolReturned
    | Confirmed | Said | Used | TaskEnded | Resolved | JobEnded | Reported | Isolated | Covered,
    Field(discriminator="event"),
]  # fmt: skip
JOB_EVENT: TypeAdapter[JobEvent] = TypeAdapter(JobEvent)
