"""Targets: from the job record to the values of a `where`, each tested on its own.

An empty text is no value, for any target.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeAlias, TypeGuard

from opsdrill.model.rules import Where
from opsdrill.model.sealed import OBJECTS, AnyCall, AnyRecord, AnyTask, SealedRecord
from opsdrill.model.ticket import TicketMessage

RAN = frozenset({"ran", "failed", "timed_out"})
"""Outcomes of a shell command that reached its shell."""
CALLED = RAN | {"refused"}
"""Outcomes of a call that was really made, whatever became of it; `claimed` is none."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_given: Callable[[AnyCall], Any] = attrgetter("arguments")  # an object with a text, by its kind
_write_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Values:
    """The values of one target, in their order; a value's place is its item number.

    Attributes:
        texts: the values.
        tasks: for targets of tasks: the ids of the tasks with a value.
        ends: for each of them the item number behind its last value.
    """

    texts: tuple[str, ...]
    tasks: tuple[str, ...] = ()
    ends: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.texts)

    def task(self, item: int) -> str | None:
        """The id of the task that a value belongs to."""
        return self.tasks[bisect_right(self.ends, item)] if self.tasks else None


def collect(record: AnyRecord, where: Where) -> Values:
    """Every value of a target: tasks in the record's order, messages in the order posted."""
    # A lone surrogate cannot be written as JSON. The light reader of sealed records takes none.
    whole = tuple if isinstance(record, SealedRecord) else _unicode
    if where in _OF_JOBS:
        return Values(whole([text for text in _OF_JOBS[where](record) if text]))
    of_task = _OF_TASKS[where]
    texts: list[str] = []
    tasks: list[str] = []
    ends: list[int] = []
    for task in record.tasks:
        found = of_task(task)
        texts += found if _are_texts(found) else [text for text in found if text]
        if len(texts) > (ends[-1] if ends else 0):
            tasks.append(task.id)
            ends.append(len(texts))
    return Values(whole(texts), tuple(tasks), tuple(ends))


def _are_texts(found: _Texts) -> TypeGuard[Sequence[str]]:
    return all(found)


def _unicode(texts: Sequence[str]) -> tuple[str, ...]:
    """Each lone surrogate replaced; one code point for one keeps spans right."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return tuple([_SURROGATE.sub("\ufffd", text) for text in texts])
    return tuple(texts)


_Texts: TypeAlias = Sequence[str | None]


def object_of(call: AnyCall) -> str:
    """The command of a shell call, the path of a file call."""
    text: str = _given(call)[OBJECTS[call.kind]]
    return text


def _executed(task: AnyTask) -> _Texts:
    calls: Sequence[Any] = task.tool_calls  # the arguments of a shell's are an object with a text
    return [
        call.arguments["command"] for call in calls if call.kind == "shell" and call.outcome in RAN
    ]


def _written(task: AnyTask) -> _Texts:
    return _paths(task, "write_file")


def _updated(task: AnyTask) -> _Texts:
    return _paths(task, "update_file")


def _paths(task: AnyTask, kind: str) -> _Texts:
    return [
        object_of(call) for call in task.tool_calls if call.kind == kind and call.outcome == "ran"
    ]


def _mcp_calls(task: AnyTask) -> _Texts:
    return [
        _joined(" ", _joined("/", call.server, call.tool), _arguments(call))
        for call in task.tool_calls
        if call.kind == "mcp" and call.outcome in CALLED
    ]


def _calls(task: AnyTask) -> _Texts:
    return [
        _joined(" ", call.tool, _arguments(call))
        for call in task.tool_calls
        if call.outcome in CALLED
    ]


def _arguments(call: AnyCall) -> str | None:
    """The arguments as compact JSON, keys in the order given; None when there are none."""
    if call.arguments is None or call.arguments in ({}, [], ""):
        return None
    return _write_json(call.arguments)


def _summary(task: AnyTask) -> _Texts:
    return [_joined(": ", task.stop_reason, task.summary)]


def _joined(separator: str, *parts: str | None) -> str:
    """The parts that are there; a missing one takes its separator with it."""
    return separator.join([part for part in parts if part])


def _said(task: AnyTask) -> _Texts:
    return [message.text for message in task.messages]


def _posted(record: AnyRecord) -> list[TicketMessage]:
    """The messages of the agent system by time; in the record's order where one has no time."""
    messages = [message for message in record.ticket.messages if message.author == "agent"]
    timed = [(message.at, message) for message in messages if message.at is not None]
    if len(timed) < len(messages):
        return messages
    return [message for _, message in sorted(timed, key=lambda item: item[0])]


_OF_TASKS: Mapping[Where, Callable[[AnyTask], _Texts]] = {
    "executed_commands": _executed,
    "task_summary": _summary,
    "task_description": lambda task: [task.description],
    "write_file": _written,
    "update_file": _updated,
    "use_mcp_tool": _mcp_calls,
    "tool_calls": _calls,
    "agent_messages": _said,
    "operational_rules": lambda task: task.operational_rules or (),
    "task_plan": lambda _task: (),
}
"""Of each task its values of a target; one without text is none."""

_OF_JOBS: Mapping[Where, Callable[[AnyRecord], _Texts]] = {
    "job_resolution": lambda record: [record.job.resolution_reasoning if record.job else None],
    "job_plan": lambda record: [record.job.plan if record.job else None],
    "gateway_messages": lambda record: [message.body for message in _posted(record)[:-1]],
    "gateway_summary": lambda record: [message.body for message in _posted(record)[-1:]],
}
"""The same of the job as a whole."""
