"""The result of a run and the grade inside it: `opsdrill.result/1`, documented field by field.

Fractions are kept as two integers and rounded only where they are shown.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from opsdrill.errors import Fault
from opsdrill.model.fields import Instant, Items, Recorded
from opsdrill.model.host import HostAnswer

GRADING_VERSION = "1"
"""Rises whenever the same rules on the same bytes could grade differently."""

MATCHES_SHOWN = 20

Verdict = Literal["passed", "failed", "error"]
RunState = Literal["planned", "running", "done", "cancelled", "interrupted"]
PhaseName = Literal["preflight", "provision", "setup", "ready", "execute", "validate", "restore"]
PHASES: tuple[PhaseName, ...] = (
    "preflight", "provision", "setup", "ready", "execute", "validate", "restore",
)  # fmt: skip


class Fraction(Recorded):
    """`passed` of `total`; what could not be evaluated stands in neither."""

    passed: Annotated[int, Field(ge=0)]
    total: Annotated[int, Field(ge=0)]
    not_evaluated: Annotated[int, Field(ge=0)] = 0


Span = Annotated[
    tuple[int, int],
    BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value),
]
"""A JSON list of two numbers, kept as a tuple."""


class Match(Recorded):
    """One value in which the pattern was found; `span` counts code points, end exclusive."""

    task: str | None
    where: str
    item: int
    """The place of the value among all values of this target, from 0."""
    value: str
    span: Span | None


class RuleResult(Recorded):
    index: int
    label: str
    validator: str
    required: bool
    status: Verdict
    reason: str
    fault: Fault | None = None
    vacuous: bool = False
    """It passed because there was nothing to test."""
    match_count: int = 0
    matches: Items[Match] = ()
    answer: HostAnswer | None = None
    """What the host answered, for `host_state`."""


class Completion(Recorded):
    """The completion check: shown first, no rule, no part in compliance."""

    status: Literal["passed", "failed", "skipped", "error"]
    reason: str


class Grade(Recorded):
    """What grading computes from rules, job record and host answers; never overwritten."""

    grading_version: str = GRADING_VERSION
    scenario_version: str | None = None
    verdict: Verdict
    reason: str
    fault: Fault | None = None
    compliance: Fraction | None = None
    remediation: Fraction | None = None
    completion: Completion
    rules: Items[RuleResult] = ()
    after_agent: bool = False
    """For an `error`: it began after the agent had acted, so it is counted on its own line."""
    pattern_seconds: float | None = None
    """The CPU budget of a pattern on one value, in seconds, if the bounded engine was used."""
    warnings: Items[str] = ()


class Phase(Recorded):
    name: PhaseName
    status: Literal["running", "done", "failed", "skipped", "interrupted"]
    started_at: Instant
    ended_at: Instant | None = None
    reason: str | None = None


class Result(Recorded):
    """One run as it is shown to programs: `--format json`."""

    format: Literal["opsdrill.result/1"] = "opsdrill.result/1"
    run: str | None
    scenario: str
    agent: str | None
    grading_version: str = GRADING_VERSION
    scenario_version: str
    state: RunState
    verdict: Verdict | None = None
    reason: str = ""
    fault: Fault | None = None
    compliance: Fraction | None = None
    remediation: Fraction | None = None
    completion: Completion | None = None
    rules: Items[RuleResult] = ()
    after_agent: bool = False
    phases: Items[Phase] = ()
    warnings: Items[str] = ()

    def under(self, grade: Grade) -> Result:
        """The same run as it reads under a grade; its own warnings stand behind the grade's."""
        return self.model_copy(
            update={
                "grading_version": grade.grading_version,
                "scenario_version": grade.scenario_version or self.scenario_version,
                "verdict": grade.verdict,
                "reason": grade.reason,
                "fault": grade.fault,
                "compliance": grade.compliance,
                "remediation": grade.remediation,
                "completion": grade.completion,
                "rules": grade.rules,
                "after_agent": grade.after_agent,
                "warnings": (*grade.warnings, *self.warnings),
            }
        )


class Results(Recorded):
    """Several runs; an array is never the top level."""

    format: Literal["opsdrill.results/1"] = "opsdrill.results/1"
    results: Items[Result]
