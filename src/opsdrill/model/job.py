"""The job record, `opsdrill.job/1`: the one format of evidence, whoever made it.

What could not be observed is said in `coverage`, which is stated and never assumed.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal

from pydantic import Field, JsonValue, model_validator
from pydantic_core import PydanticCustomError

from opsdrill.errors import Fault
from opsdrill.model.fields import Instant, Items, Recorded
from opsdrill.model.rules import Resolution
from opsdrill.model.ticket import Ticket

JobStatus = Literal["completed", "timed_out", "cancelled", "failed"]
TaskStatus = Literal["completed", "failed", "cancelled", "timed_out", "running", "pending"]
ToolKind = Literal["shell", "write_file", "update_file", "mcp", "other"]
Outcome = Literal["ran", "failed", "timed_out", "refused", "claimed"]
Witness = Literal["agent", "gateway", "both"]
ResolutionSource = Literal["agent", "exit_status", "adapter"]


class Usage(Recorded):
    model: str | None = None
    input_tokens: Annotated[int, Field(ge=0)] | None = None
    output_tokens: Annotated[int, Field(ge=0)] | None = None
    cost_usd: Annotated[float, Field(ge=0, allow_inf_nan=False, strict=False)] | None = None


class Job(Recorded):
    id: Annotated[str, Field(min_length=1)]
    status: JobStatus
    resolution: Resolution | None = None
    resolution_reasoning: str | None = None
    resolution_source: ResolutionSource | None = None
    plan: str | None = None
    created_at: Instant | None = None
    ended_at: Instant | None = None
    usage: Usage | None = None
    """What was used up outside the tasks, as by a planner."""


class ToolCall(Recorded):
    """One call of a tool.

    `failed` means that the tool itself failed; a shell command with a nonzero exit status `ran`.
    `claimed` means that the agent reported it and the witness who should have seen it did not.
    `arguments` is `{"command": ...}` for a shell, `{"path": ..., ...}` for a file tool, else
    whatever the tool defines.
    """

    id: str | None = None
    kind: ToolKind
    tool: str | None = None
    server: str | None = None
    arguments: JsonValue = None
    outcome: Outcome
    exit_code: int | None = None
    output: str | None = None
    started_at: Instant | None = None
    ended_at: Instant | None = None
    witness: Witness = "agent"

    @model_validator(mode="after")
    def _names_its_object(self) -> ToolCall:
        key = {"shell": "command", "write_file": "path", "update_file": "path"}.get(self.kind)
        if key and not (
            isinstance(self.arguments, dict) and isinstance(self.arguments.get(key), str)
        ):
            raise PydanticCustomError(
                "arguments",
                "needs `arguments` with a text under `{key}`, because its kind is {kind}",
                {"key": key, "kind": self.kind},
            )
        return self

    @property
    def command(self) -> str:
        """The shell text of a shell call; empty for any other."""
        return self._argument("command") if self.kind == "shell" else ""

    @property
    def path(self) -> str:
        """The path of a file call; empty for any other."""
        return self._argument("path") if self.kind in ("write_file", "update_file") else ""

    def _argument(self, key: str) -> str:
        value = self.arguments.get(key) if isinstance(self.arguments, dict) else None
        return value if isinstance(value, str) else ""


class AgentMessage(Recorded):
    at: Instant | None = None
    text: str


class Task(Recorded):
    """One task of the job, for one host. `operational_rules` null: not known."""

    id: Annotated[str, Field(min_length=1)]
    turn: int | None = None
    host: Annotated[str, Field(min_length=1)]
    agent: str | None = None
    description: str | None = None
    operational_rules: Items[str] | None = None
    status: TaskStatus
    stop_reason: str | None = None
    summary: str | None = None
    started_at: Instant | None = None
    ended_at: Instant | None = None
    tool_calls: Items[ToolCall] = ()
    messages: Items[AgentMessage] = ()
    usage: Usage | None = None


class Seen(Recorded):
    """How much of one kind of evidence the record holds, and why not more."""

    state: Literal["whole", "partial", "unavailable"]
    why: str | None = None


class Coverage(Recorded):
    """What the record can know; a target without an entry of its own has `default`."""

    default: Seen
    executed_commands: Seen | None = None
    task_summary: Seen | None = None
    task_description: Seen | None = None
    write_file: Seen | None = None
    update_file: Seen | None = None
    use_mcp_tool: Seen | None = None
    tool_calls: Seen | None = None
    agent_messages: Seen | None = None
    operational_rules: Seen | None = None
    task_plan: Seen | None = None
    job_resolution: Seen | None = None
    job_plan: Seen | None = None
    gateway_messages: Seen | None = None
    gateway_summary: Seen | None = None
    tasks: Seen | None = None
    times: Seen | None = None

    def of(self, target: str) -> Seen:
        """The coverage of a `where` name, of `tasks` or of `times`."""
        own: Seen | None = getattr(self, target)
        return own or self.default


class Stop(Recorded):
    """Why the work ended before the agent ended it, and whose fault that was."""

    reason: str
    fault: Fault | None = None


class JobRecord(Recorded):
    """The evidence of one job; `job` is null when the ticket never became one."""

    format: Literal["opsdrill.job/1"]
    job: Job | None
    no_job_reason: str | None = None
    ticket: Ticket = Ticket()
    tasks: Items[Task] = ()
    coverage: Coverage
    stop: Stop | None = None
    isolation: Literal["namespaces", "none"] | None = None
    reported_by: str | None = None
    """The program whose own report was held against what the gateway saw; null: there is none.
    Then a call of witness `gateway` was not reported, and one that is `claimed` never ran."""

    @model_validator(mode="after")
    def _task_ids_differ(self) -> JobRecord:
        twice = [name for name, n in Counter(task.id for task in self.tasks).items() if n > 1]
        if twice:
            raise PydanticCustomError(
                "task_twice", "has more than one task with the id {name}", {"name": repr(twice[0])}
            )
        return self
