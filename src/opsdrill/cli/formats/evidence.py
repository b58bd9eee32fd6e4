"""A job record for people at a terminal: the job, then each task with its calls in order."""

from __future__ import annotations

from opsdrill.app import documents
from opsdrill.app.safe_text import indented, shown, shown_block
from opsdrill.cli.output import Output
from opsdrill.model.job import JobRecord, Task, ToolCall

SHOWN = 500
"""Characters of one text that are shown; `--format json` has them all."""


def show(out: Output, record: JobRecord) -> None:
    """Everything in the record, the long texts cut."""
    job = record.job
    if job is None:
        out.line(f"no job: {shown(record.no_job_reason or 'no reason was recorded')}")
    else:
        reason = f": {job.resolution_reasoning}" if job.resolution_reasoning else ""
        ended = f"{job.status}, {job.resolution or 'no resolution'}{reason}"
        out.line(f"job {shown(job.id)}: {shown(ended)}")
        if job.plan:
            out.line(f"plan: {shown(job.plan, limit=SHOWN)}")
    if record.stop:
        out.line(f"stopped: {shown(record.stop.reason)} (fault: {record.stop.fault or 'nobody'})")
    for task in record.tasks:
        _task(out, task)
    if record.ticket.messages:
        out.line("\nticket:")
    for message in record.ticket.messages:
        out.line(f"  {message.author}: {shown(message.body, limit=SHOWN)}")


def _task(out: Output, task: Task) -> None:
    turn = f", turn {task.turn}" if task.turn is not None else ""
    out.line(f"\ntask {shown(task.id)} on {shown(task.host)}{turn}: {task.status}")
    if task.description:
        out.line(f"  {shown(task.description, limit=SHOWN)}")
    for call in task.tool_calls:
        out.line(f"  {shown(_call(call), limit=SHOWN)}")
        if call.output:
            out.line(indented(shown_block(call.output.rstrip("\n"), limit=SHOWN), 6))
    for message in task.messages:
        out.line(f"  said: {shown(message.text, limit=SHOWN)}")
    if task.summary or task.stop_reason:
        parts = [part for part in (task.stop_reason, task.summary) if part]
        out.line(f"  end: {shown(': '.join(parts), limit=SHOWN)}")


def _call(call: ToolCall) -> str:
    ended = f" -> {call.exit_code}" if call.exit_code is not None else ""
    outcome = "" if call.outcome == "ran" else f" ({call.outcome})"
    if call.kind == "shell":
        return f"$ {call.command}{ended}{outcome}"
    name = "/".join(part for part in (call.server, call.tool or call.kind) if part)
    return f"{name} {documents.written(call.arguments).decode()}{outcome}"
