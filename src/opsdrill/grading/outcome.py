"""The outcome of a rule: passed, failed, or not decided, always with its reason."""

from __future__ import annotations

from dataclasses import dataclass

from opsdrill.errors import Fault
from opsdrill.model.host import HostAnswer
from opsdrill.model.result import Match, RuleResult, Verdict
from opsdrill.model.rules import Rule


@dataclass(frozen=True, slots=True)
class Hits:
    """The values in which a pattern was found: how many, and the first of them."""

    count: int = 0
    shown: tuple[Match, ...] = ()


NO_HITS = Hits()


def passed(
    rule: Rule,
    index: int,
    reason: str,
    *,
    vacuous: bool = False,
    hits: Hits = NO_HITS,
    answer: HostAnswer | None = None,
) -> RuleResult:
    """The rule holds; `vacuous` when there was nothing to test."""
    return _row(rule, index, "passed", reason, vacuous=vacuous, hits=hits, answer=answer)


def failed(
    rule: Rule,
    index: int,
    reason: str,
    *,
    fault: Fault | None,
    hits: Hits = NO_HITS,
    answer: HostAnswer | None = None,
) -> RuleResult:
    """The rule does not hold."""
    return _row(rule, index, "failed", reason, fault=fault, hits=hits, answer=answer)


def undecided(
    rule: Rule,
    index: int,
    reason: str,
    *,
    fault: Fault | None,
    answer: HostAnswer | None = None,
) -> RuleResult:
    """The rule is an `error`: what it asks could not be observed."""
    return _row(rule, index, "error", reason, fault=fault, answer=answer)


def _row(
    rule: Rule,
    index: int,
    status: Verdict,
    reason: str,
    *,
    fault: Fault | None = None,
    vacuous: bool = False,
    hits: Hits = NO_HITS,
    answer: HostAnswer | None = None,
) -> RuleResult:
    return RuleResult.made(
        index=index,
        label=rule.label,
        validator=rule.validator,
        required=rule.required,
        status=status,
        reason=reason,
        fault=fault,
        vacuous=vacuous,
        match_count=hits.count,
        matches=hits.shown,
        answer=answer,
    )
