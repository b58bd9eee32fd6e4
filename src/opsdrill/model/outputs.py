"""What the tool calls of a job record gave, apart from it.

It is the most of nearly every record, and no rule looks at it. So a store keeps it for itself, and
whoever grades many records never touches it.
"""

from __future__ import annotations

from typing import TypeAlias

from opsdrill.model.job import JobRecord, ToolCall

Outputs: TypeAlias = tuple[tuple[str | None, ...], ...]
"""Of each task what each of its tool calls gave, in the record's order."""


def apart(record: JobRecord) -> tuple[JobRecord, Outputs]:
    """The record without outputs, and the outputs; none at all where no call has one."""
    outputs = tuple(tuple(call.output for call in task.tool_calls) for task in record.tasks)
    if not any(output is not None for given in outputs for output in given):
        return record, ()
    tasks = tuple(
        task.model_copy(update={"tool_calls": tuple(map(_without, task.tool_calls))})
        for task in record.tasks
    )
    return record.model_copy(update={"tasks": tasks}), outputs


def _without(call: ToolCall) -> ToolCall:
    return call.model_copy(update={"output": None})


def together(record: JobRecord, outputs: Outputs) -> JobRecord:
    """The record that these two were.

    The outputs are put into `record` itself, which nobody else may have yet: copies of its calls
    would take as long as reading them.

    Raises:
        ValueError: they were not one record.
    """
    if [len(given) for given in outputs] != [len(task.tool_calls) for task in record.tasks]:
        raise ValueError("these are not the outputs of this record")
    for task, given in zip(record.tasks, outputs, strict=True):
        for call, output in zip(task.tool_calls, given, strict=True):
            call.__dict__["output"] = output  # models are frozen for everybody who has one
    return record
