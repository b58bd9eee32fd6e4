"""What the tool calls of a job record gave, apart from it.

It is the most of nearly every record, and no rule looks at it. So a store keeps it for itself, and
whoever grades many records never touches it.
"""

from __future__ import annotations

from typing import TypeAlias

from opsdrill.model.job import JobRecord

Outputs: TypeAlias = tuple[tuple[str | None, ...], ...]
"""Of each task what each of its tool calls gave, in the record's order."""


def apart(record: JobRecord) -> tuple[JobRecord, Outputs]:
    """The record without outputs, and the outputs; none at all where no call has one."""
    outputs = tuple(tuple(call.output for call in task.tool_calls) for task in record.tasks)
    if not any(output is not None for given in outputs for output in given):
        return record, ()
    return _with(record, tuple((None,) * len(given) for given in outputs)), outputs


def together(record: JobRecord, outputs: Outputs) -> JobRecord:
    """The record that these two were.

    Raises:
        ValueError: they were not one record.
    """
    if [len(given) for given in outputs] != [len(task.tool_calls) for task in record.tasks]:
        raise ValueError("these are not the outputs of this record")
    return _with(record, outputs)


def _with(record: JobRecord, outputs: Outputs) -> JobRecord:
    tasks = []
    for task, given in zip(record.tasks, outputs, strict=True):
        pairs = zip(task.tool_calls, given, strict=True)
        calls = tuple(call.model_copy(update={"output": output}) for call, output in pairs)
        tasks.append(task.model_copy(update={"tool_calls": calls}))
    return record.model_copy(update={"tasks": tuple(tasks)})
