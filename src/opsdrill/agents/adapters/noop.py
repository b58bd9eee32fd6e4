"""`noop`: does nothing and says so. A scenario that it passes grades nothing."""

from __future__ import annotations

from opsdrill.agents.adapter import AdapterContext, Assignment
from opsdrill.errors import UsageError
from opsdrill.evidence.recorder import Recorder
from opsdrill.model.event import JobCreated, JobEnded, Posted, Resolved


class NoopAdapter:
    """Takes the ticket, creates no task, and resolves the job with `no_action`."""

    name = "noop"

    def __init__(self, context: AdapterContext) -> None:
        if context.argument is not None:
            raise UsageError("the agent `noop` takes no argument", hint="write it as noop")

    async def preflight(self, hosts: tuple[str, ...]) -> None:
        """It can always start."""

    async def work(self, assignment: Assignment, recorder: Recorder) -> None:  # noqa: ARG002
        recorder.record(JobCreated(job="job-1"))
        recorder.record(Posted(author="agent", body="I did nothing."))
        recorder.record(
            Resolved(resolution="no_action", reasoning="Nothing was done.", source="adapter")
        )
        recorder.record(JobEnded(status="completed"))
