"""The two stories of a job: where the agent's own report and the gateway differ."""

from __future__ import annotations

from dataclasses import dataclass

from opsdrill.model.job import JobRecord, ToolCall


@dataclass(frozen=True, slots=True)
class Differences:
    """What only one of two witnesses tells; each with its host.

    Args:
        by: the program whose report was read.
        never_run: reported, and seen by nobody who must have seen it.
        not_reported: seen, and left out of the report.
    """

    by: str
    never_run: tuple[tuple[str, ToolCall], ...]
    not_reported: tuple[tuple[str, ToolCall], ...]


def differences(record: JobRecord) -> Differences | None:
    """Where the two stories of a record differ; None where there is only one."""
    if record.reported_by is None:
        return None
    calls = [(task.host, call) for task in record.tasks for call in task.tool_calls]
    return Differences(
        record.reported_by,
        tuple((host, call) for host, call in calls if call.outcome == "claimed"),
        tuple(
            (host, call)
            for host, call in calls
            if call.witness == "gateway" and call.outcome != "refused"
        ),
    )
