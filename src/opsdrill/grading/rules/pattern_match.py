"""`pattern_match`: a regular expression is found in the evidence, or nowhere in it."""

from __future__ import annotations

from functools import lru_cache

from opsdrill.errors import InvalidPattern
from opsdrill.grading.evidence import Evidence
from opsdrill.grading.explain import clean, counted, listed, quoted
from opsdrill.grading.gaps import gap_in
from opsdrill.grading.outcome import Hits, failed, passed, undecided
from opsdrill.grading.targets import Values
from opsdrill.model.result import Match, RuleResult
from opsdrill.model.rules import TASK_WHERES, PatternMatch, Where
from opsdrill.patterns import Found

NO_TASKS = "No tasks to check"

_SHOWN = 3
"""Values without a match that a reason shows."""


def evaluate(rule: PatternMatch, index: int, evidence: Evidence) -> RuleResult:
    """A match decides, whatever is missing; without one, everything must have been seen."""
    if rule.where in TASK_WHERES:
        without = _without_tasks(rule, index, evidence)
        if without is not None:
            return without
    try:
        found = evidence.found(rule, index)
    except InvalidPattern as error:
        reason = f"the pattern is refused: {clean(error.message)}"
        return undecided(rule, index, reason, fault="author")
    values = evidence.values(rule.where)
    if found.count:
        return _matched(rule, index, evidence, _hits(rule, values, found))
    if found.exhausted:
        place = _place(rule, values, found.exhausted[0])
        more = len(found.exhausted) - 1
        beside = f" and {counted(more, 'more value')}" if more else ""
        budget = f"{evidence.searcher.seconds:g} s of CPU each"
        reason = f"pattern exceeded its time budget on {place}{beside} ({budget})"
        return undecided(rule, index, reason, fault="author")
    gap = evidence.gap(rule.where)
    if gap is not None:
        reason = f"no match in {_counted(rule.where, len(values))}, but {gap}"
        return undecided(rule, index, reason, fault=gap.fault)
    return _unmatched(rule, index, evidence, values)


def _without_tasks(rule: PatternMatch, index: int, evidence: Evidence) -> RuleResult | None:
    """The end of a rule about tasks where there are none, or nothing that could be known."""
    gap = evidence.tasks_gap
    if gap is not None and not gap.partial:
        return undecided(rule, index, f"cannot look at the tasks: {gap}", fault=gap.fault)
    if gap is None and not evidence.record.tasks:
        return failed(rule, index, NO_TASKS, fault=evidence.blame)
    if rule.where == "operational_rules":
        return _without_rules(rule, index, evidence)
    return None


def _without_rules(rule: PatternMatch, index: int, evidence: Evidence) -> RuleResult | None:
    """Operational rules that are unavailable fail the rule, negated or not."""
    tasks = evidence.record.tasks
    if not tasks:
        return None
    unknown = [clean(task.id) for task in tasks if task.operational_rules is None]
    gap = gap_in(evidence.record.coverage, "operational_rules")
    if unknown:
        reason = f"the operational rules are unavailable for task {listed(unknown)}"
        return failed(rule, index, reason, fault=evidence.blame)
    if gap is not None and not gap.partial:
        reason = f"the operational rules are unavailable: {gap}"
        return failed(rule, index, reason, fault=evidence.blame)
    return None


def _hits(rule: PatternMatch, values: Values, found: Found) -> Hits:
    where, texts = rule.where, values.texts
    shown = [
        Match.made(task=values.task(item), where=where, item=item, value=texts[item], span=span)
        for item, span in found.first
    ]
    return Hits(found.count, tuple(shown))


def _matched(rule: PatternMatch, index: int, evidence: Evidence, hits: Hits) -> RuleResult:
    values, first = evidence.values(rule.where), hits.shown[0]
    found = (
        f"found in {hits.count} of {_counted(rule.where, len(values))}, "
        f"first in {_place(rule, values, first.item)}: {quoted(first.value, first.span)}"
    )
    if not rule.negate:
        return passed(rule, index, found, hits=hits)
    reason = f"must be nowhere, but {found}"
    return failed(rule, index, reason, fault=evidence.blame, hits=hits)


def _unmatched(rule: PatternMatch, index: int, evidence: Evidence, values: Values) -> RuleResult:
    if not values.texts:
        reason = f"`{rule.where}` has no value"
        if rule.negate:
            return passed(rule, index, f"{reason}, so there was nothing to test", vacuous=True)
        return failed(rule, index, f"{reason} to find the pattern in", fault=evidence.blame)
    if rule.negate:
        return passed(rule, index, f"found in none of {_counted(rule.where, len(values.texts))}")
    looked_at = listed([quoted(text) for text in values.texts[:_SHOWN]])
    more = f" and {len(values) - _SHOWN} more" if len(values) > _SHOWN else ""
    reason = f"found in none of {_counted(rule.where, len(values))}: {looked_at}{more}"
    return failed(rule, index, reason, fault=evidence.blame)


def _place(rule: PatternMatch, values: Values, item: int) -> str:
    """`executed_commands[3] of task t1`: the same item number as in the matches."""
    task = values.task(item)
    return f"{rule.where}[{item}]" + ("" if task is None else f" of task {clean(task, 60)}")


@lru_cache(maxsize=256)  # the same for all rules of a target
def _counted(where: Where, number: int) -> str:
    return f"{counted(number, 'value')} of `{where}`"
