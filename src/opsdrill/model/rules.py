"""The five rules of a scenario's `validation` array.

What each one means is documented, rule by rule, in docs/reference/grading.md; here stands only
what can be told without a job record: shapes and what is refused.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from opsdrill.model.fields import Filled, HostName, NotBlank, ShellText, Written, refuse, refused

Resolution = Literal["success", "partial", "no_action", "agentic_failure", "hard_failure"]
RESOLUTIONS: tuple[Resolution, ...] = get_args(Resolution)

Where = Literal[
    "executed_commands",
    "task_summary",
    "task_description",
    "write_file",
    "update_file",
    "use_mcp_tool",
    "tool_calls",
    "agent_messages",
    "operational_rules",
    "task_plan",
    "job_resolution",
    "job_plan",
    "gateway_messages",
    "gateway_summary",
]
WHERES: tuple[Where, ...] = get_args(Where)
JOB_WHERES: frozenset[str] = frozenset({"job_resolution", "job_plan"})
GATEWAY_WHERES: frozenset[str] = frozenset({"gateway_messages", "gateway_summary"})
TASK_WHERES: frozenset[str] = frozenset(WHERES) - JOB_WHERES - GATEWAY_WHERES


class _Rule(Written):
    label: NotBlank
    """Shown in the results."""
    required: bool = True
    """An optional rule counts in the compliance but never fails the run."""


class HostState(_Rule):
    """A command on a host, after the job, ends with the expected exit status."""

    validator: Literal["host_state"]
    run: ShellText
    """Shell text, run as root after the job."""
    on: HostName | None = None
    """A host of the scenario; the first one when left out."""
    exit_code: Annotated[int, Field(ge=0, le=255)] = 0


class JobResolutionStatus(_Rule):
    """The job's resolution is one of those listed."""

    validator: Literal["job_resolution_status"]
    statuses: Filled[Resolution]


class PatternMatch(_Rule):
    """A regular expression is found in the evidence, or with `negate` nowhere in it."""

    validator: Literal["pattern_match"]
    pattern: NotBlank
    """Python's dialect, case-insensitive, searched in each value apart."""
    where: Where
    negate: bool = False


class TaskCount(_Rule):
    """The number of tasks that the job created lies within the bounds, both inclusive."""

    validator: Literal["task_count"]
    min: Annotated[int, Field(ge=0)] | None = None
    max: Annotated[int, Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _bounds(self) -> TaskCount:
        if self.min is None and self.max is None:
            raise PydanticCustomError("no_bound", "needs `min` or `max` or both")
        if self.min is not None and self.max is not None and self.max < self.min:
            low, high = str(self.min), str(self.max)
            message = "is {low}, more than `max` ({high})"
            refuse("TaskCount", [refused(("min",), self.min, message, low=low, high=high)])
        return self


class TurnItem(Written):
    """What one turn of the job must have been."""

    hosts: Filled[HostName] | None = None
    """Every one of them has a task in the turn; without `at_least`, no other host has."""
    at_least: Annotated[int, Field(ge=1)] | None = None
    """The turn has at least this many different hosts."""

    @model_validator(mode="after")
    def _says_something(self) -> TurnItem:
        if self.hosts is None and self.at_least is None:
            raise PydanticCustomError("no_turn", "needs `hosts` or `at_least` or both")
        first: dict[str, int] = {}
        twice = [
            refused(("hosts", i), name, "lists the host {name} a second time", name=repr(name))
            for i, name in enumerate(self.hosts or ())
            if first.setdefault(name, i) != i
        ]
        if twice:
            refuse("TurnItem", twice)
        return self


class Turns(_Rule):
    """The first turns of the job ran on the listed hosts, in this order."""

    validator: Literal["turns"]
    turns: Filled[TurnItem]


VALIDATORS = ("host_state", "job_resolution_status", "pattern_match", "task_count", "turns")


def _tag(value: Any) -> str | None:
    name = value.get("validator") if isinstance(value, dict) else getattr(value, "validator", None)
    return f"<{name}>" if name in VALIDATORS else None


def _known_validator(value: object) -> object:
    if isinstance(value, _Rule):
        return value
    if not isinstance(value, dict):
        raise PydanticCustomError("object_type", "must be an object")
    if "validator" not in value:
        refuse("Rule", [InitErrorDetails(type="missing", loc=("validator",), input=value)])
    if value["validator"] not in VALIDATORS:
        known = {"expected": ", ".join(VALIDATORS)}
        wrong = InitErrorDetails(
            type="literal_error", loc=("validator",), input=value["validator"], ctx=known
        )
        refuse("Rule", [wrong])
    return value


Rule = Annotated[
    Annotated[HostState, Tag("<host_state>")]
    | Annotated[JobResolutionStatus, Tag("<job_resolution_status>")]
    | Annotated[PatternMatch, Tag("<pattern_match>")]
    | Annotated[TaskCount, Tag("<task_count>")]
    | Annotated[Turns, Tag("<turns>")],
    Discriminator(_tag),
    BeforeValidator(_known_validator),
]
