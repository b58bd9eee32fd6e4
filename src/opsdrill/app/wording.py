"""How a result is worded, the same in every format that people read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from opsdrill.model.result import Fraction, Match, Result, RuleResult

_NAMED = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"|\d+")
"""What differs between two warnings of one kind."""
LIKEWISE = 3
"""Warnings of a kind that are told by name, beside the first one."""
AROUND = 60
"""Code points of a value that are shown on each side of a match."""


def verdict(result: Result) -> str:
    """The verdict, or for a run that has none its state."""
    return result.verdict or result.state


def share(fraction: Fraction | None) -> str:
    """`3/4 (75%)`; a dash where nothing was evaluated. Rounded here and nowhere before."""
    if fraction is None or not fraction.total:
        return "-"
    text = f"{fraction.passed}/{fraction.total} ({percent(fraction.passed, fraction.total)})"
    return f"{text}, {fraction.not_evaluated} not evaluated" if fraction.not_evaluated else text


def percent(part: int, whole: int) -> str:
    """`86%`, rounded; but 100% is said of all only, and 0% of none only."""
    nearest = (200 * part + whole) // (2 * whole)
    least, most = int(part > 0), 99 if part < whole else 100
    return f"{min(max(nearest, least), most)}%"


def tally(results: Sequence[Result]) -> str:
    """`6 passed, 2 failed, 2 error of 10`: errors stand beside the others, in no rate."""
    counts = Counter(verdict(result) for result in results)
    order = ["passed", "failed", "error"]
    order += sorted(state for state in counts if state not in order)
    parts = [f"{counts[name]} {name}" for name in order if counts[name]]
    return f"{', '.join(parts) or 'no runs'} of {len(results)}"


def pass_rate(results: Sequence[Result]) -> str | None:
    """`pass rate 6 of 8 (75%), without the 2 in error`; None where nothing was judged."""
    judged = [result for result in results if result.verdict in ("passed", "failed")]
    errors = sum(result.verdict == "error" for result in results)
    if not judged or len(results) == 1:
        return None
    passed = sum(result.verdict == "passed" for result in judged)
    text = f"pass rate {passed} of {len(judged)} ({percent(passed, len(judged))})"
    return f"{text}, without the {errors} in error" if errors else text


def broken_unseen(results: Sequence[Result]) -> str | None:
    """The errors that began after the agent had acted: nobody gains by breaking things unseen."""
    late = sum(result.verdict == "error" and result.after_agent for result in results)
    return f"{late} of the errors began after the agent had acted" if late else None


def rule_line(rule: RuleResult) -> str:
    """A rule and what became of it, in one line."""
    notes = [rule.validator] + (["optional"] if not rule.required else [])
    notes += ["nothing to test"] if rule.vacuous else []
    fault = f" (fault: {rule.fault})" if rule.fault and rule.status == "error" else ""
    return f"{rule.status}  [{rule.index}] {rule.label} ({', '.join(notes)}): {rule.reason}{fault}"


def match_line(match: Match) -> str:
    """Where a match is, and the matched text marked `>>so<<` within its surroundings."""
    place = f"task {match.task}, " if match.task is not None else ""
    head = f"{place}{match.where} {match.item}: "
    if match.span is None:
        return head + match.value[: 2 * AROUND]
    start, end = match.span
    before, found, after = match.value[:start], match.value[start:end], match.value[end:]
    if len(before) > AROUND:
        before = "..." + before[-AROUND:]
    if len(found) > 4 * AROUND:
        found = found[: 2 * AROUND] + " ... " + found[-2 * AROUND :]
    if len(after) > AROUND:
        after = after[:AROUND] + "..."
    return f"{head}{before}>>{found}<<{after}"


def name(result: Result) -> str:
    """The run in words: scenario, and agent where one is known."""
    return f"{result.scenario}, {result.agent}" if result.agent else result.scenario


def by_kind(warnings: Sequence[str]) -> list[str]:
    """The first warning of each kind, and in what the others of the kind differ from it."""
    kinds: dict[str, list[str]] = {}
    for warning in warnings:
        kinds.setdefault(_NAMED.sub("", warning), []).append(warning)
    return [_first(*kind) for kind in kinds.values()]


def _first(first: str, *others: str) -> str:
    if not others:
        return first
    named = [
        " ".join(
            name
            for name, own in zip(_NAMED.findall(other), _NAMED.findall(first), strict=False)
            if name != own
        )
        for other in others
    ]
    told = [name for name in dict.fromkeys(named) if name][:LIKEWISE]
    left = len(others) - len(told)
    more = [f"{left} more"] if left else []
    return f"{first}; likewise {', '.join([*told, *more])}"
