"""Targets: from the job record to the values of a `where`, each tested on its own.

An empty text is no value, for any target.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from opsdrill.model.job import JobRecord, Task, ToolCall
from opsdrill.model.rules import Where
from opsdrill.model.ticket import TicketMessage

RAN = frozenset({"ran", "failed", "timed_out"})
"""Outcomes of a shell command that reached its shell."""
CALLED = RAN | {"refused"}
"""Outcomes of a call that was really made, whatever became of it; `claimed` is none."""

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Values:
    """The values of one target; `tasks[i]` is the id of the task that `texts[i]` belongs to.

    The place in these tuples is the value's item number. Both have the same length.
    """

    texts: tuple[str, ...]
    tasks: tuple[str | None, ...]

    def __len__(self) -> int:
        return len(self.texts)


class _Found(NamedTuple):
    task: str | None
    text: str | None


def collect(record: JobRecord, where: Where) -> Values:
    """Every value of a target: tasks in the record's order, messages in the order posted."""
    found = [(item.task, item.text) for item in _TARGETS[where](record) if item.text]
    return Values(
        texts=tuple(_unicode(text) for _, text in found),
        tasks=tuple(task for task, _ in found),
    )


def _unicode(text: str) -> str:
    # A lone surrogate cannot be written as JSON. One code point for one keeps spans right.
    if text.isascii():
        return text
    return _SURROGATE.sub("\ufffd", text)


def _calls(text: Callable[[ToolCall], str | None]) -> Callable[[JobRecord], Iterator[_Found]]:
    """A target with at most one value for each tool call."""

    def values(record: JobRecord) -> Iterator[_Found]:
        return (_Found(task.id, text(call)) for task in record.tasks for call in task.tool_calls)

    return values


def _tasks(text: Callable[[Task], str | None]) -> Callable[[JobRecord], Iterator[_Found]]:
    """A target with at most one value for each task."""

    def values(record: JobRecord) -> Iterator[_Found]:
        return (_Found(task.id, text(task)) for task in record.tasks)

    return values


def _executed(call: ToolCall) -> str | None:
    return call.command if call.kind == "shell" and call.outcome in RAN else None


def _written(call: ToolCall) -> str | None:
    return call.path if call.kind == "write_file" and call.outcome == "ran" else None


def _updated(call: ToolCall) -> str | None:
    return call.path if call.kind == "update_file" and call.outcome == "ran" else None


def _mcp_call(call: ToolCall) -> str | None:
    if call.kind != "mcp" or call.outcome not in CALLED:
        return None
    return _joined(" ", _joined("/", call.server, call.tool), _arguments(call))


def _any_call(call: ToolCall) -> str | None:
    return _joined(" ", call.tool, _arguments(call)) if call.outcome in CALLED else None


def _arguments(call: ToolCall) -> str | None:
    """The arguments as compact JSON, keys in the order given; None when there are none."""
    if call.arguments is None or call.arguments in ({}, [], ""):
        return None
    return json.dumps(call.arguments, ensure_ascii=False, separators=(",", ":"))


def _summary(task: Task) -> str | None:
    return _joined(": ", task.stop_reason, task.summary)


def _joined(separator: str, *parts: str | None) -> str:
    """The parts that are there; a missing one takes its separator with it."""
    return separator.join(part for part in parts if part)


def _said(record: JobRecord) -> Iterator[_Found]:
    return (_Found(task.id, message.text) for task in record.tasks for message in task.messages)


def _given_rules(record: JobRecord) -> Iterator[_Found]:
    return (_Found(task.id, text) for task in record.tasks for text in task.operational_rules or ())


def _nothing(_record: JobRecord) -> Iterator[_Found]:
    return iter(())


def _resolution(record: JobRecord) -> Iterator[_Found]:
    yield _Found(None, record.job.resolution_reasoning if record.job else None)


def _plan(record: JobRecord) -> Iterator[_Found]:
    yield _Found(None, record.job.plan if record.job else None)


def _earlier_messages(record: JobRecord) -> Iterator[_Found]:
    return (_Found(None, message.body) for message in _posted(record)[:-1])


def _last_message(record: JobRecord) -> Iterator[_Found]:
    return (_Found(None, message.body) for message in _posted(record)[-1:])


def _posted(record: JobRecord) -> list[TicketMessage]:
    """The messages of the agent system by time; in the record's order where one has no time."""
    messages = [message for message in record.ticket.messages if message.author == "agent"]
    timed = [(message.at, message) for message in messages if message.at is not None]
    if len(timed) < len(messages):
        return messages
    return [message for _, message in sorted(timed, key=lambda item: item[0])]


_TARGETS: Mapping[Where, Callable[[JobRecord], Iterator[_Found]]] = {
    "executed_commands": _calls(_executed),
    "task_summary": _tasks(_summary),
    "task_description": _tasks(lambda task: task.description),
    "write_file": _calls(_written),
    "update_file": _calls(_updated),
    "use_mcp_tool": _calls(_mcp_call),
    "tool_calls": _calls(_any_call),
    "agent_messages": _said,
    "operational_rules": _given_rules,
    "task_plan": _nothing,
    "job_resolution": _resolution,
    "job_plan": _plan,
    "gateway_messages": _earlier_messages,
    "gateway_summary": _last_message,
}
