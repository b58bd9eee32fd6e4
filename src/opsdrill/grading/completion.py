"""The completion check: did the job end, and end well. Always made; no rule, not in compliance."""

from __future__ import annotations

from opsdrill.grading.explain import clean, quoted
from opsdrill.model.job import Job
from opsdrill.model.result import Completion
from opsdrill.model.rules import JobResolutionStatus
from opsdrill.model.scenario import Scenario
from opsdrill.model.sealed import AnyRecord

GOOD_ENDS = frozenset({"success", "partial", "no_action"})


def check_completion(scenario: Scenario, record: AnyRecord) -> Completion:
    """The check's row. `error` where the record cannot say anything about the agent's work."""
    if record.job is None:
        why = f": {clean(record.no_job_reason)}" if record.no_job_reason else ""
        return Completion.made(status="error", reason=f"the ticket never became a job{why}")
    if broken_off(record):
        return Completion.made(status="error", reason=_ended(scenario, record, record.job))
    for index, rule in enumerate(scenario.validation):
        if _expects_failure(rule):
            reason = f"skipped: required rule {index} {quoted(rule.label)} accepts agentic_failure"
            return Completion.made(status="skipped", reason=reason)
    good = record.job.status == "completed" and record.job.resolution in GOOD_ENDS
    return Completion.made(
        status="passed" if good else "failed", reason=_ended(scenario, record, record.job)
    )


def broken_off(record: AnyRecord) -> bool:
    """There is no ended job to judge, and somebody else than the agent is to blame.

    A job that ended as `completed` was not broken off, whatever else the record says.
    """
    if record.job is None:
        return True
    fault = record.stop.fault if record.stop else None
    return record.job.status != "completed" and fault not in (None, "agent")


def _expects_failure(rule: object) -> bool:
    return (
        isinstance(rule, JobResolutionStatus)
        and rule.required
        and "agentic_failure" in rule.statuses
    )


def _ended(scenario: Scenario, record: AnyRecord, job: Job) -> str:
    """How the job ended, in a sentence."""
    why = f": {clean(record.stop.reason)}" if record.stop else ""
    match job.status:
        case "timed_out":
            limit = scenario.limits.job_seconds
            return f"the job timed out; its limit is {limit:g} s{why}"
        case "failed":
            return f"the job failed{why}"
        case "cancelled":
            return f"the job was cancelled{why}"
        case "completed" if job.resolution is None:
            return f"the job ended without a resolution{why}"
        case "completed":
            return f"the job ended with the resolution {job.resolution}"
