"""The file of the `script` adapter, `opsdrill.script/1`: what an agent does, written down."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    JsonValue,
    StringConstraints,
    Tag,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from opsdrill.model.fields import MODE, HostName, Items, NotBlank, ShellText, Written
from opsdrill.model.rules import Resolution

PAUSE_LIMIT = 86400


def _absolute(path: str) -> str:
    if not path.startswith("/") or path.endswith("/") or "\0" in path:
        raise PydanticCustomError("not_absolute", "must be an absolute path of a file")
    return path


FilePath = Annotated[
    str, AfterValidator(_absolute), WithJsonSchema({"type": "string", "pattern": "^/.*[^/]$"})
]
FileMode = Annotated[str, StringConstraints(pattern=MODE)]
Pause = Annotated[float, Field(ge=0, le=PAUSE_LIMIT, allow_inf_nan=False)]


class WriteFile(Written):
    path: FilePath
    content: str
    mode: FileMode | None = None
    """Left out, a file that exists keeps its own and a new one gets 0644."""


class UpdateFile(Written):
    path: FilePath
    old: Annotated[str, Field(min_length=1)]
    """Must occur in the file exactly once, else the tool call fails."""
    new: str


class McpCall(Written):
    server: NotBlank
    tool: NotBlank
    arguments: dict[str, JsonValue] | None = None
    refuse: bool = False
    """The call was refused before it ran."""


class Run(Written):
    """A command that is really run on the task's host."""

    run: ShellText


class Write(Written):
    """A file that is really written on the task's host."""

    write: WriteFile


class Update(Written):
    """A file that is really edited on the task's host."""

    update: UpdateFile


class Mcp(Written):
    """An MCP call that is only reported: no server is asked."""

    mcp: McpCall


class Say(Written):
    """An answer of the agent."""

    say: str


class Claim(Written):
    """A command that the agent says it ran and did not run."""

    claim: ShellText


class Sleep(Written):
    """Seconds in which the task does nothing."""

    sleep: Pause


_KINDS = ("run", "write", "update", "mcp", "say", "claim", "sleep")


def _kind(value: Any) -> str | None:
    """The kind of an item; of one that mixes kinds the first, so that the other key is refused."""
    if isinstance(value, dict):
        return next((f"<{kind}>" for kind in _KINDS if kind in value), None)
    name = type(value).__name__.lower()
    return f"<{name}>" if name in _KINDS else None


Item = Annotated[
    Annotated[Run, Tag("<run>")]
    | Annotated[Write, Tag("<write>")]
    | Annotated[Update, Tag("<update>")]
    | Annotated[Mcp, Tag("<mcp>")]
    | Annotated[Say, Tag("<say>")]
    | Annotated[Claim, Tag("<claim>")]
    | Annotated[Sleep, Tag("<sleep>")],
    Discriminator(
        _kind,
        custom_error_type="unknown_item",
        custom_error_message="must be an object with one of the keys " + ", ".join(_KINDS),
    ),
]


class End(Written):
    """How a task ends."""

    status: Literal["completed", "failed", "cancelled", "timed_out"] = "completed"
    stop_reason: str | None = None
    summary: str | None = None


class ScriptTask(Written):
    """One task: what is done on its host, one item after the other."""

    host: HostName
    description: str | None = None
    operational_rules: Items[NotBlank] = ()
    """Given to this task, after those of the scenario."""
    agent: str | None = None
    """The name of the agent that works on the task."""
    do: Items[Item] = ()
    end: End = End()


class ScriptTurn(Written):
    """Tasks that start together; the next turn starts when all of them ended."""

    post: NotBlank | None = None
    """Posted to the ticket before the turn."""
    tasks: Items[ScriptTask] = ()


class Resolve(Written):
    """How the agent resolves the job."""

    resolution: Resolution
    reasoning: str | None = None


class Script(Written):
    """All that a scripted agent does with a ticket."""

    format: Literal["opsdrill.script/1"]
    plan: str | None = None
    turns: Items[ScriptTurn] = ()
    post: NotBlank | None = None
    """The last message to the ticket."""
    resolve: Resolve | None = None
    """Left out, the job ends without a resolution."""
    no_job: NotBlank | None = None
    """Why the ticket never becomes a job; then nothing else may be here."""

    @model_validator(mode="after")
    def _job_or_none(self) -> Self:
        if self.no_job is not None and (self.plan or self.turns or self.post or self.resolve):
            raise PydanticCustomError("no_job", "has `no_job`, so that nothing else can be done")
        return self
