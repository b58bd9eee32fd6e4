"""Why a run has its verdict: each rule beside what it asked, what was seen, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from opsdrill.app.lines import Lines
from opsdrill.grading.turns import turns_of
from opsdrill.model.job import JobRecord
from opsdrill.model.result import Match, Result, RuleResult
from opsdrill.model.rules import (
    HostState,
    JobResolutionStatus,
    PatternMatch,
    Rule,
    TaskCount,
    TurnItem,
    Turns,
)
from opsdrill.model.scenario import Scenario
from opsdrill.web.render import marked

AROUND = 160
"""Characters that are shown on each side of what matched."""
MOST_TURNS = 12
MOST_NAMES = 40
Facts = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class MatchShown:
    """A value that matched; `line` is where the transcript has it."""

    value: Markup
    task: str | None
    where: str
    item: int
    line: int | None


@dataclass(frozen=True, slots=True)
class RuleShown:
    """A rule's result.

    Args:
        result: what grading said.
        wanted: what the rule asks, as short facts; empty where its text is not known.
        seen: beside each other, what was wanted and what was seen.
        matches: the values that matched.
    """

    result: RuleResult
    wanted: Facts
    seen: tuple[tuple[str, str, str], ...]
    matches: tuple[MatchShown, ...]


def rules_shown(result: Result, scenario: Scenario, found: Lines | None) -> list[RuleShown]:
    """Every rule of a result.

    Args:
        result: as the latest grade has it.
        scenario: with the rules that it was graded by.
        found: the record; None: it is not read yet, and what only it tells is left out.
    """
    return [_shown(one, _rule_of(one, scenario), found) for one in result.rules]


def _rule_of(result: RuleResult, scenario: Scenario) -> Rule | None:
    """The rule, where the scenario at hand has it: a regrade may have used edited ones."""
    if result.index >= len(scenario.validation):
        return None
    rule = scenario.validation[result.index]
    same = rule.validator == result.validator and rule.label == result.label
    return rule if same else None


def _shown(result: RuleResult, rule: Rule | None, found: Lines | None) -> RuleShown:
    return RuleShown(
        result,
        _wanted(rule),
        _seen(rule, found.record) if found is not None else (),
        tuple(_match(match, found) for match in result.matches),
    )


def _match(match: Match, found: Lines | None) -> MatchShown:
    return MatchShown(
        excerpt(match.value, match.span),
        match.task,
        match.where,
        match.item,
        found.place(match.where, match.item) if found is not None else None,
    )


def excerpt(value: str, span: tuple[int, int] | None) -> Markup:
    """What matched, marked, with what stands around it."""
    start, end = span or (0, 0)
    end = min(end, start + 2 * AROUND)
    first, last = max(start - AROUND, 0), min(end + AROUND, len(value))
    inner = (start - first, end - first) if span else None
    before = Markup("…") if first else Markup("")
    after = Markup("…") if last < len(value) else Markup("")
    return before + marked(value[first:last], inner) + after


def _wanted(rule: Rule | None) -> Facts:
    match rule:
        case PatternMatch():
            how = "must be found in none of" if rule.negate else "must be found in one of"
            return (("pattern", rule.pattern), (how, rule.where))
        case HostState():
            where = rule.on or "the first host"
            return (("runs", rule.run), ("on", where), ("exit status", str(rule.exit_code)))
        case JobResolutionStatus():
            return (("resolution", " or ".join(rule.statuses)),)
        case TaskCount():
            bounds = (("at least", rule.min), ("at most", rule.max))
            return tuple((name, str(bound)) for name, bound in bounds if bound is not None)
    return ()


def _seen(rule: Rule | None, record: JobRecord) -> tuple[tuple[str, str, str], ...]:
    match rule:
        case Turns():
            return _turns(rule, record)
        case TaskCount():
            wanted = ", ".join(f"{name} {bound}" for name, bound in _wanted(rule))
            return (("tasks", wanted, str(len(record.tasks))),)
        case JobResolutionStatus():
            job = record.job
            seen = (job.resolution if job else None) or "none"
            return (("resolution", " or ".join(rule.statuses), seen),)
    return ()


def _turns(rule: Turns, record: JobRecord) -> tuple[tuple[str, str, str], ...]:
    turns = turns_of(record.tasks)
    rows = []
    for place in range(min(max(len(rule.turns), len(turns)), MOST_TURNS)):
        wanted = _turn_wanted(rule.turns[place]) if place < len(rule.turns) else "anything"
        hosts = [task.host for task in turns[place]] if place < len(turns) else []
        rows.append((f"turn {place + 1}", wanted, _names(hosts) or "nothing"))
    return tuple(rows)


def _turn_wanted(item: TurnItem) -> str:
    said = [_names(item.hosts)] if item.hosts else []
    if item.at_least is not None:
        said.append(f"at least {item.at_least} hosts")
    return " and ".join(said)


def _names(hosts: Sequence[str]) -> str:
    more = len(hosts) - MOST_NAMES
    return ", ".join(hosts[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
