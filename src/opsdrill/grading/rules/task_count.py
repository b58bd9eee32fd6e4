"""`task_count`: the number of tasks that the job created lies within the bounds."""

from __future__ import annotations

from opsdrill.grading.evidence import Evidence
from opsdrill.grading.explain import counted
from opsdrill.grading.outcome import failed, passed, undecided
from opsdrill.model.result import RuleResult
from opsdrill.model.rules import TaskCount


def evaluate(rule: TaskCount, index: int, evidence: Evidence) -> RuleResult:
    """Counts every task, failed and cancelled ones too.

    Where tasks may be missing, the number seen is a lower bound: it can pass `min` and break
    `max`, and decides nothing else.
    """
    seen = len(evidence.record.tasks)
    gap = evidence.tasks_gap
    if gap is not None and not gap.partial:
        return undecided(rule, index, f"cannot count the tasks: {gap}", fault=gap.fault)
    made = f"{'at least ' if gap else ''}{counted(seen, 'task')}, {_bounds(rule)}"
    if rule.max is not None and seen > rule.max:
        return failed(rule, index, made, fault=evidence.blame)
    enough = rule.min is None or seen >= rule.min
    if gap is None:
        return (
            passed(rule, index, made) if enough else failed(rule, index, made, fault=evidence.blame)
        )
    if enough and rule.max is None:
        return passed(rule, index, made)
    return undecided(rule, index, f"{made}: {gap}", fault=gap.fault)


def _bounds(rule: TaskCount) -> str:
    if rule.min is None:
        return f"allowed at most {rule.max}"
    if rule.max is None:
        return f"required at least {rule.min}"
    if rule.min == rule.max:
        return f"required exactly {rule.min}"
    return f"required {rule.min} to {rule.max}"
