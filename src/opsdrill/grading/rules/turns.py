"""`turns`: the first turns of the job ran on the listed hosts, in this order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from opsdrill.grading.evidence import Evidence
from opsdrill.grading.explain import clean, counted, listed
from opsdrill.grading.gaps import Gap, gap_in
from opsdrill.grading.outcome import failed, passed, undecided
from opsdrill.grading.turns import Turn, numbered
from opsdrill.model.result import RuleResult
from opsdrill.model.rules import TurnItem, Turns
from opsdrill.model.sealed import AnyTask

NO_TASKS = "No tasks to check"

_SHOWN = 8
"""Hosts of a turn, and turns after those listed, that a reason shows."""


def evaluate(rule: Turns, index: int, evidence: Evidence) -> RuleResult:
    """Compares item i with the job's i-th turn; further turns are free.

    A task that may be missing could stand in any turn, so that nothing is sure without all tasks.
    Where times may be missing, what needs a missing one is not decided.
    """
    tasks, coverage = evidence.record.tasks, evidence.record.coverage
    gap = evidence.tasks_gap
    if gap is None and not tasks:
        return failed(rule, index, NO_TASKS, fault=evidence.blame)
    times = gap_in(coverage, "times")
    gap = gap or _blind(times, tasks)
    if gap is not None:
        return undecided(rule, index, f"cannot tell the turns: {gap}", fault=gap.fault)
    turns = evidence.turns
    shown = _as_they_ran(turns[: len(rule.turns) + _SHOWN], len(turns))
    wrong = _wrong(rule, turns)
    if wrong:
        return failed(rule, index, f"{wrong}; as they ran: {shown}", fault=evidence.blame)
    idle = _unfinished(turns[: len(rule.turns)])
    if idle and times is not None:
        reason = f"{idle}, but {times}; as they ran: {shown}"
        return undecided(rule, index, reason, fault=times.fault)
    if idle:
        return failed(rule, index, f"{idle}; as they ran: {shown}", fault=evidence.blame)
    return passed(rule, index, shown)


def _blind(times: Gap | None, tasks: Sequence[AnyTask]) -> Gap | None:
    """The gap in the times, where it hides the turns themselves."""
    if times is None or not times.partial:
        return times
    known = all(task.started_at and task.ended_at for task in tasks)
    return None if numbered(tasks) or known else times


def _wrong(rule: Turns, turns: Sequence[Turn]) -> str | None:
    """What is wrong whatever the missing times were; None: nothing."""
    for number, item in enumerate(rule.turns, start=1):
        if number > len(turns):
            return f"{counted(len(turns), 'turn')}, but the rule lists {len(rule.turns)}"
        turn = turns[number - 1]
        wrong = _wrong_hosts(item, turn) or _not_together(turn)
        if wrong:
            return f"turn {number} {wrong}"
    return None


def _wrong_hosts(item: TurnItem, turn: Turn) -> str | None:
    tasks_on = Counter(task.host for task in turn)
    there, wanted = set(tasks_on), set(item.hosts or ())
    twice = {host for host, count in tasks_on.items() if count > 1}
    if twice:
        return f"has more than one task on {_names(twice)}"
    if absent := wanted - there:
        return f"has no task on {_names(absent)}"
    if item.at_least is None and (extra := there - wanted):
        return f"has a task on {_names(extra)}, which is not listed"
    if item.at_least is not None and len(there) < item.at_least:
        return f"has {counted(len(there), 'host')}, required at least {item.at_least}"
    return None


def _not_together(turn: Turn) -> str | None:
    """Touching ends are one after the other; a task alone is together with itself."""
    gap = _apart(turn)
    return None if gap is None else f"did not run at the same time: {gap}"


def _apart(turn: Turn) -> str | None:
    starts = [(task.started_at, task.id, task.host) for task in turn if task.started_at]
    ends = [(task.ended_at, task.id, task.host) for task in turn if task.ended_at]
    if len(turn) < 2 or not starts or not ends:
        return None
    start, late_id, late = max(starts)
    end, early_id, early = min(ends)
    if start < end:
        return None
    if late_id == early_id:
        # A task that took no time ran together with nothing.
        return f"{clean(late)} ended when it started"
    return f"{clean(late)} started {_after(start, end)} {clean(early)} ended"


def _after(start: datetime, end: datetime) -> str:
    seconds = (start - end).total_seconds()
    if seconds == 0:
        return "when"
    return f"{seconds:.1f} s after" if seconds >= 0.1 else f"{seconds:.6f}".rstrip("0") + " s after"


def _unfinished(turns: Sequence[Turn]) -> str | None:
    for number, turn in enumerate(turns, start=1):
        for task in turn:
            if task.started_at is None:
                return f"turn {number} has a task on {clean(task.host)} that never started"
            if task.ended_at is None:
                return f"turn {number} has a task on {clean(task.host)} that never ended"
    return None


def _as_they_ran(turns: Sequence[Turn], total: int) -> str:
    """`turn 1: web-01, web-02 (web-02 started 3.1 s after web-01 ended)`."""
    if not turns:
        return "no turn"
    said = []
    for number, turn in enumerate(turns, start=1):
        gap = _apart(turn)
        hosts = listed([clean(task.host) for task in turn], _SHOWN)
        said.append(f"turn {number}: {hosts}" + (f" ({gap})" if gap else ""))
    more = f"; and {counted(total - len(turns), 'more turn')}" if total > len(turns) else ""
    return "; ".join(said) + more


def _names(hosts: set[str]) -> str:
    return listed([clean(host) for host in sorted(hosts)], _SHOWN)
