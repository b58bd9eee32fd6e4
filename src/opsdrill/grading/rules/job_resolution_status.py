"""`job_resolution_status`: the job's resolution is one of those listed."""

from __future__ import annotations

from opsdrill.grading.evidence import Evidence
from opsdrill.grading.outcome import failed, passed
from opsdrill.model.result import RuleResult
from opsdrill.model.rules import JobResolutionStatus


def evaluate(rule: JobResolutionStatus, index: int, evidence: Evidence) -> RuleResult:
    """Passes when the resolution is listed; a job without one, or no job, has none listed."""
    accepted = ", ".join(rule.statuses)
    job = evidence.record.job
    if job is None or job.resolution is None:
        who = "there is no job and so" if job is None else "the job ended with"
        return failed(
            rule, index, f"{who} no resolution; accepted: {accepted}", fault=evidence.blame
        )
    if job.resolution in rule.statuses:
        return passed(rule, index, f"the resolution is {job.resolution}")
    reason = f"the resolution is {job.resolution}; accepted: {accepted}"
    return failed(rule, index, reason, fault=evidence.blame)
