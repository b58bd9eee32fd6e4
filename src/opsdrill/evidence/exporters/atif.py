"""ATIF, the Agent Trajectory Interchange Format of Harbor, version 1.7.

Source: Harbor, RFC 0001 "trajectory format" (laude-institute/harbor, docs/rfcs), whose fields and
rules this follows: steps are numbered from 1 without gaps, only an agent's steps have tool calls,
and a result names a call of its own step. What the format has no place for (task, turn, host, exit
status, outcome, witness) stands in `extra`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pydantic import JsonValue

from opsdrill.model.job import AgentMessage, JobRecord, Task, ToolCall

VERSION = "ATIF-v1.7"
_LAST = datetime.max.replace(tzinfo=UTC)


@dataclass(slots=True)
class _Step:
    """What one agent said, and the calls that it made with it."""

    task: Task
    at: datetime | None
    text: str = ""
    calls: list[ToolCall] = field(default_factory=list)


def atif(record: JobRecord, *, session: str, agent: str, version: str) -> dict[str, JsonValue]:
    """A job record as one trajectory; its commands, messages and tool calls are all in it.

    Args:
        record: the job record.
        session: the id of the run.
        agent: who worked.
        version: of the program that writes it.
    """
    steps = [_asked(record), *(_agent_step(step) for step in _ordered(record))]
    numbered: list[JsonValue] = [
        {"step_id": number, **step} for number, step in enumerate(steps, 1)
    ]
    extra: dict[str, JsonValue] = {"coverage": record.coverage.model_dump(exclude_none=True)}
    if record.job is not None:
        extra["job"] = record.job.model_dump(mode="json", exclude_none=True)
    return {
        "schema_version": VERSION,
        "session_id": session,
        "agent": {"name": agent, "version": version},
        "steps": numbered,
        "final_metrics": _metrics(record, len(steps)),
        "extra": extra,
    }


def _asked(record: JobRecord) -> dict[str, JsonValue]:
    text = "\n\n".join(part for part in (record.ticket.title, record.ticket.body) if part)
    return {"source": "user", "message": text}


def _ordered(record: JobRecord) -> list[_Step]:
    """All steps by time; in the record's order where one has none."""
    steps = [step for task in record.tasks for step in _steps(task)]
    if any(step.at is None for step in steps):
        return steps
    return sorted(steps, key=lambda step: step.at or _LAST)


def _steps(task: Task) -> Iterator[_Step]:
    """A task's messages, each with the calls up to the next one."""
    step = _Step(task, task.started_at)
    for item in _items(task):
        if isinstance(item, AgentMessage):
            if step.text or step.calls:
                yield step
            step = _Step(task, item.at, item.text)
        else:
            step.at = step.at or item.started_at
            step.calls.append(item)
    if step.text or step.calls:
        yield step


def _items(task: Task) -> list[AgentMessage | ToolCall]:
    timed = [(message.at, message) for message in task.messages]
    called = [(call.started_at, call) for call in task.tool_calls]
    items: list[tuple[datetime | None, AgentMessage | ToolCall]] = [*timed, *called]
    if all(at is not None for at, _ in items):
        items.sort(key=lambda item: item[0] or _LAST)
    return [item for _, item in items]


def _agent_step(step: _Step) -> dict[str, JsonValue]:
    place: dict[str, JsonValue] = {"task": step.task.id, "host": step.task.host}
    if step.task.turn is not None:
        place["turn"] = step.task.turn
    made: dict[str, JsonValue] = {"source": "agent", "message": step.text, "extra": place}
    if step.at is not None:
        made["timestamp"] = step.at.isoformat().replace("+00:00", "Z")
    if step.task.usage and step.task.usage.model:
        made["model_name"] = step.task.usage.model
    if step.calls:
        ids = [call.id or f"call-{number}" for number, call in enumerate(step.calls, 1)]
        made["tool_calls"] = [_call(call, id) for call, id in zip(step.calls, ids, strict=True)]
        results: list[JsonValue] = [
            {"source_call_id": id, "content": call.output}
            for call, id in zip(step.calls, ids, strict=True)
            if call.output is not None
        ]
        if results:
            made["observation"] = {"results": results}
    return made


def _call(call: ToolCall, id: str) -> JsonValue:
    arguments: JsonValue = (
        call.arguments if isinstance(call.arguments, dict) else {"value": call.arguments}
    )
    name = call.tool or {"shell": "bash"}.get(call.kind, call.kind)
    more = {"kind": call.kind, "outcome": call.outcome, "witness": call.witness}
    extra: dict[str, JsonValue] = {**more}
    for key, value in (("exit_code", call.exit_code), ("server", call.server)):
        if value is not None:
            extra[key] = value
    return {"tool_call_id": id, "function_name": name, "arguments": arguments, "extra": extra}


def _metrics(record: JobRecord, steps: int) -> dict[str, JsonValue]:
    job = [record.job.usage] if record.job is not None else []
    usages = [usage for usage in (*job, *(t.usage for t in record.tasks)) if usage is not None]
    found: dict[str, JsonValue] = {"total_steps": steps}
    for name, key in (
        ("input_tokens", "total_prompt_tokens"),
        ("output_tokens", "total_completion_tokens"),
        ("cost_usd", "total_cost_usd"),
    ):
        known = [value for usage in usages if (value := getattr(usage, name)) is not None]
        if known:
            found[key] = sum(known)
    return found


def written(trajectory: dict[str, JsonValue]) -> bytes:
    """The trajectory as a JSON document; halves of surrogate pairs as escapes."""
    return json.dumps(trajectory, indent=2).encode()
