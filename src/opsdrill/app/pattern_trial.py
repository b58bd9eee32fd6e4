"""Try a pattern, and rules, on what kept runs of a scenario showed, while somebody writes them.

Bounded in runs, values and seconds: what was not looked at is said, and never taken for no match.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from opsdrill.app.imports import WITHOUT
from opsdrill.app.patience import patient
from opsdrill.app.secrets import mask_for
from opsdrill.app.wiring import Place
from opsdrill.errors import InvalidInput, InvalidPattern, Problem, UsageError
from opsdrill.grading.flips import Flip
from opsdrill.grading.targets import Values, collect
from opsdrill.model.rules import PatternMatch, Where
from opsdrill.model.scenario import Scenario
from opsdrill.model.sealed import read_record
from opsdrill.patterns import Pattern, Searcher, compile_pattern
from opsdrill.runner.regrader import AT_ONCE, Edited, Manner, Regrader
from opsdrill.scenarios.document import Document
from opsdrill.scenarios.lint import lint
from opsdrill.scenarios.load import BAD_PATTERN, LoadedScenario
from opsdrill.store.store import RunFilter, Store

RUNS = 50
"""The last runs that are looked at, if nobody says how many."""
RUNS_LIMIT = AT_ONCE
CHARACTERS = 20_000_000
"""How much of the values is looked at."""
SHOWN = 100
"""Matching values that are shown."""
AROUND = 200
"""Code points that are shown of a value before and behind a match."""
PATTERN_SECONDS, FLIP_SECONDS = 5.0, 15.0
"""How long a pattern is searched, and how long runs are graded."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What is tried.

    Args:
        key: the scenario whose runs are looked at.
        pattern: what is searched.
        where: in which values.
        negate: the rule is a must-not rule.
        rules: rules that the runs are graded by as well; None: they are not.
        runs: how many of the last runs are looked at.
    """

    key: str
    pattern: str
    where: Where
    negate: bool = False
    rules: LoadedScenario | None = None
    runs: int = RUNS


@dataclass(frozen=True, slots=True)
class Matched:
    """A value that matches, or the part of a long one around the match.

    Args:
        run: the run that showed it.
        task: the task, for values of tasks.
        item: the value's place among all of its run, from 0.
        value: the text.
        span: where the first match is in `value`, in code points.
        cut: how many code points of the value were left out before `value`; None: none at all.
    """

    run: str
    task: str | None
    item: int
    value: str
    span: tuple[int, int]
    cut: int | None = None


@dataclass(frozen=True, slots=True)
class Flipped:
    """What runs would be judged otherwise.

    Args:
        graded: how many runs were graded.
        verdicts: how many of their verdicts flip.
        flips: these flips, and those of their rules.
        notes: what is to be said of runs that were left out.
    """

    graded: int
    verdicts: int
    flips: tuple[Flip, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of it.

    Args:
        runs: how many runs were looked at.
        runs_matched: in how many of them the pattern matches some value.
        values: how many values were looked at.
        matched: how many of them match.
        exhausted: values of which it is not known, for the search used up its time.
        matches: the first of them.
        flipped: what the rules would change; None: there were no rules.
        limits: what was not looked at, and why.
        warnings: what lint says of the pattern.
    """

    runs: int
    runs_matched: int
    values: int
    matched: int
    exhausted: int
    matches: tuple[Matched, ...]
    flipped: Flipped | None
    limits: tuple[str, ...]
    warnings: tuple[Problem, ...]


def tried(place: Place, store: Store, wish: Wish) -> Trial:
    """Try a pattern on the last runs of a scenario that are done.

    Raises:
        InvalidInput: the pattern is outside the dialect; names the position.
    """
    pattern = _compiled(wish.pattern)
    limits: list[str] = []
    rows = store.page(RunFilter(scenario=wish.key, state="done"), limit=wish.runs).rows
    names = [row.id for row in rows]
    values = _values(store, names, wish.where, limits)
    found = _Counted()
    try:
        with patient(PATTERN_SECONDS, "searching the pattern in kept runs") as searcher:
            for run, some in values:
                found.add(run, some, pattern, searcher)
    except UsageError as error:
        limits.append(error.message)
    flipped = None
    if wish.rules is not None:
        flipped = _flipped(place, store, names, wish.rules, limits)
    return Trial(
        runs=found.runs,
        runs_matched=found.runs_matched,
        values=found.values,
        matched=found.matched,
        exhausted=found.exhausted,
        matches=tuple(found.matches),
        flipped=flipped,
        limits=tuple(limits),
        warnings=_warnings(wish),
    )


def _compiled(text: str) -> Pattern:
    try:
        if not text.strip():
            raise InvalidPattern("must not be blank", None)
        return compile_pattern(text)
    except InvalidPattern as error:
        problem = Problem("pattern", f"is no valid pattern: {error.message}", code=BAD_PATTERN)
        raise InvalidInput("the pattern is refused", [problem]) from None


def _warnings(wish: Wish) -> tuple[Problem, ...]:
    rule = PatternMatch(
        label="tried",
        validator="pattern_match",
        pattern=wish.pattern,
        where=wish.where,
        negate=wish.negate,
    )
    scenario = Scenario(key="tried", title="tried", ticket_title="tried", validation=(rule,))
    found = lint(LoadedScenario(scenario, None, None, Document(None), {}))
    return tuple(replace(problem, path="pattern") for problem in found)


def _values(
    store: Store, runs: Sequence[str], where: Where, limits: list[str]
) -> list[tuple[str, Values]]:
    """The values of each run, as long as there is room for them."""
    found: list[tuple[str, Values]] = []
    left = CHARACTERS
    for number, run in enumerate(runs):
        try:
            (sealed,) = store.sealed([run])
        except KeyError:
            continue  # deleted meanwhile
        if sealed.record is None:
            continue
        try:
            values = collect(read_record(sealed.record), where)
        except ValueError:
            limits.append(f"the job record of run {run} cannot be read")
            continue
        left -= sum(map(len, values.texts))
        if left < 0:
            limits.append(f"only the last {number} runs were looked at: they hold very much")
            break
        found.append((run, values))
    return found


class _Counted:
    """What was found so far."""

    def __init__(self) -> None:
        self.runs = self.runs_matched = self.values = self.matched = self.exhausted = 0
        self.matches: list[Matched] = []

    def add(self, run: str, values: Values, pattern: Pattern, searcher: Searcher) -> None:
        """Search the values of one more run. Raises OpsDrillError where the time is over."""
        searched = searcher.search(pattern, values.texts)
        hits = [(item, span) for item, span in enumerate(searched.spans) if span is not None]
        self.runs += 1
        self.runs_matched += bool(hits)
        self.values += len(values)
        self.matched += len(hits)
        self.exhausted += len(searched.exhausted)
        for item, span in hits[: SHOWN - len(self.matches)]:
            shown = Matched(run, values.task(item), item, values.texts[item], span)
            self.matches.append(_cut(shown))


def _cut(match: Matched) -> Matched:
    start, end = match.span
    first = max(0, start - AROUND)
    last = min(len(match.value), min(end, start + 10 * AROUND) + AROUND)
    if first == 0 and last == len(match.value):
        return match
    span = (start - first, min(end, last) - first)
    return replace(match, value=match.value[first:last], span=span, cut=first)


def _flipped(
    place: Place, store: Store, runs: Sequence[str], rules: LoadedScenario, limits: list[str]
) -> Flipped | None:
    manner = Manner(
        Edited(rules.scenario, rules.version),
        frozenset({WITHOUT}),
        preview=True,
        mask=partial(mask_for, place),
    )
    until = time.monotonic() + FLIP_SECONDS
    flips: list[Flip] = []
    notes: list[str] = []
    graded = 0
    try:
        with patient(FLIP_SECONDS, "grading kept runs by these rules") as searcher:
            regrader = Regrader(store, searcher, manner)
            for number, run in enumerate(runs):
                if time.monotonic() > until:
                    limits.append(f"only the last {number} runs were graded: they take long")
                    break
                chunk = regrader.chunk([run])
                graded += chunk.graded
                flips += chunk.flips
                notes += [f"run {run}: {text}" for text, run in chunk.notes]
    except UsageError as error:
        limits.append(error.message)
        return None
    verdicts = sum(flip.rule == "verdict" for flip in flips)
    return Flipped(graded, verdicts, tuple(flips), tuple(notes))
