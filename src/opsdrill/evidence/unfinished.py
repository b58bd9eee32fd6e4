"""What the record says of things that had no end when the work was stopped or killed."""

from __future__ import annotations

from collections.abc import Set

from opsdrill.model.job import (
    Coverage,
    JobStatus,
    Outcome,
    Seen,
    Stop,
    TaskStatus,
    ToolKind,
)

INTERRUPTED = Stop(reason="interrupted", fault="infrastructure")
"""The events break off: the process that recorded them is no more. Nobody's fault in the agent."""


def status_of(stopped: JobStatus | None, *, started: bool) -> TaskStatus:
    """The status of a task that never ended; `stopped` is the job's, None for a killed run."""
    if not started:
        return "pending"
    match stopped:
        case "timed_out" | "cancelled":
            return stopped
        case _:
            return "running"


def outcome_of(stopped: JobStatus | None) -> Outcome:
    """The outcome of a call that never returned: it was begun, so it counts as made."""
    return "timed_out" if stopped == "timed_out" else "failed"


def covered(coverage: Coverage, *, interrupted: bool, unreturned: Set[ToolKind]) -> Coverage:
    """The coverage, given what is missing at the end.

    Nothing is whole in a record that breaks off. A file that was being written when the work was
    stopped may have been written or not, so the calls that ran are not all known.
    """
    changes: dict[str, Seen] = {}
    if interrupted:
        why = "the recording was interrupted"
        changes = {
            name: Seen(state="partial", why=why)
            for name in Coverage.model_fields
            if (seen := getattr(coverage, name)) is not None and seen.state == "whole"
        }
    for kind in ("write_file", "update_file"):
        if kind in unreturned and coverage.of(kind).state == "whole":
            why = "a call had not returned when the work was stopped"
            changes[kind] = Seen(state="partial", why=why)
    return coverage.model_copy(update=changes)
