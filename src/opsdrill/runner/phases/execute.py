"""Execute: the ticket goes to the agent; the job record comes back, sealed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from opsdrill.agents.adapter import Adapter, Assignment
from opsdrill.errors import OpsDrillError
from opsdrill.evidence.recorder import Recorder
from opsdrill.hosts.driver import Host
from opsdrill.model.event import (
    JobCreated,
    JobEnded,
    JobEvent,
    NoJob,
    TaskCreated,
    TaskStarted,
    ToolCalled,
)
from opsdrill.model.scenario import Scenario
from opsdrill.model.ticket import Ticket

STOP_SECONDS = 30.0
"""How long an adapter may take to end what it started, once it was told to stop."""


class Attendance(Recorder):
    """A recorder that knows how far the job got, and that has the last word on how it ended.

    Once the runner stopped the work (`stopped`), how the job ended is for the runner to say;
    what an adapter claims about that while it cleans up is left out.
    """

    created = False
    ended = False
    acted = False
    stopped = False

    def record(self, event: JobEvent) -> None:
        """Keep one event."""
        ending = isinstance(event, JobEnded | NoJob)
        if ending and self.stopped:
            return
        super().record(event)
        self.created = self.created or isinstance(event, JobCreated | NoJob)
        self.ended = self.ended or ending
        self.acted = self.acted or isinstance(event, TaskCreated | TaskStarted | ToolCalled)

    def close(self, job: str, ending: JobEnded) -> None:
        """Say how the job ended, unless the agent did before it was stopped."""
        if self.ended:
            return
        if not self.created:
            self.record(JobCreated(job=job))
        self.stopped = False
        self.record(ending)
        self.stopped = True


def assignment(
    scenario: Scenario, hosts: Mapping[str, Host], users: Mapping[str, str] | None = None
) -> Assignment:
    """All that the agent may know of the scenario, and nothing else.

    Args:
        users: who commands run as on a host, where that is not root.
    """
    return Assignment(
        ticket=ticket(scenario),
        hosts={name: hosts[name] for name in scenario.host_names},
        operational_rules=scenario.operational_rules,
        job_seconds=scenario.limits.job_seconds,
        command_seconds=scenario.limits.command_seconds,
        users=users or {},
    )


def ticket(scenario: Scenario) -> Ticket:
    """The ticket as the agent gets it."""
    return Ticket(title=scenario.ticket_title, body=scenario.ticket_body)


async def execute(
    job: str,
    adapter: Adapter,
    task: Assignment,
    recorder: Attendance,
    broken: asyncio.Future[None],
) -> None:
    """Let the agent work until it ends or its time is up.

    Args:
        job: the id of the job where the adapter gives none.
        broken: done when the evidence cannot be kept any more; the work is stopped then.

    Raises:
        OpsDrillError: the agent could not be started (`AgentUnavailable`), or the adapter ended
            the run for another reason that says nothing about the agent.
        Exception: why the evidence could not be kept.
    """
    work = asyncio.create_task(adapter.work(task, recorder))
    try:
        await asyncio.wait(
            {work, broken}, timeout=task.job_seconds, return_when=asyncio.FIRST_COMPLETED
        )
        in_time = work.done()
        if not in_time:
            recorder.stopped = True
            await stop(work, adapter.name)
        if broken.done():
            broken.result()
    except asyncio.CancelledError:
        recorder.stopped = True
        with suppress(OpsDrillError):  # nothing of it is graded, so nobody need account for it
            await stop(work, adapter.name)
        reason = "the run was cancelled"
        recorder.close(job, JobEnded(status="cancelled", reason=reason, fault="operator"))
        raise
    recorder.close(job, _ending(work, in_time, task.job_seconds))
    recorder.stopped = True
    error = None if work.cancelled() else work.exception()
    if in_time and isinstance(error, OpsDrillError):
        raise error


async def stop(work: asyncio.Task[None], adapter: str) -> None:
    """Tell the adapter to stop and wait until it ended what it started.

    Raises:
        OpsDrillError: it did not end; what it does from now on nobody can account for.
    """
    work.cancel()
    await asyncio.wait({work}, timeout=STOP_SECONDS)
    if not work.done():
        raise OpsDrillError(
            f"the adapter {adapter} did not stop within {STOP_SECONDS:g} s of being told to"
        )
    if not work.cancelled():
        work.exception()  # seen: what a stopped adapter raises says nothing more


def _ending(work: asyncio.Task[None], in_time: bool, limit: float) -> JobEnded:
    """How the job ended, for a job whose adapter did not say so."""
    if not in_time:
        reason = f"the time limit of the job was reached: {limit:g} s (job_seconds)"
        return JobEnded(status="timed_out", reason=reason, fault="agent")
    error = asyncio.CancelledError() if work.cancelled() else work.exception()
    if isinstance(error, OpsDrillError):
        return JobEnded(status="failed", reason=str(error), fault=error.fault)
    if error is not None:
        reason = f"the agent crashed: {type(error).__name__}: {error}".rstrip(": ")
        return JobEnded(status="failed", reason=reason, fault="agent")
    return JobEnded(status="failed", reason="the agent ended without saying so", fault="agent")
