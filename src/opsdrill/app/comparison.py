"""Comparisons: what sets of runs have for each scenario and agent, regressions first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from opsdrill.app.history import there
from opsdrill.app.run_sets import RunSet, chosen, filtered, mean_share, share
from opsdrill.errors import InvalidInput, Problem, UsageError
from opsdrill.model.result import RuleResult
from opsdrill.store.store import RunFilter, RunRow, Store

MOST_RUNS = 2000
"""Runs of one set."""
MOST_READ = 20
"""Runs of one cell whose rules are looked at, the newest."""

Change = Literal["worse", "same", "better", "unknown"]
Key = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class SetWanted:
    """A named set: what a filter lets through, or these very runs."""

    name: str
    narrowed: RunFilter
    runs: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """What one set has for one line."""

    rows: tuple[RunRow, ...]

    def count(self, verdict: str) -> int:
        return sum(row.verdict == verdict for row in self.rows)

    @property
    def judged(self) -> list[RunRow]:
        """The runs that say something of the agent."""
        return [row for row in self.rows if row.verdict in ("passed", "failed")]

    @property
    def pass_rate(self) -> float | None:
        return share(self.count("passed"), len(self.judged))

    @property
    def compliance(self) -> float | None:
        return mean_share(row.compliance for row in self.judged)


@dataclass(frozen=True, slots=True)
class RuleFlip:
    """A rule that a set judges otherwise than the first set; `runs` are some where it failed."""

    rule: str
    set: str
    before: str
    after: str
    change: Change
    runs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the grid."""

    scenario: str | None
    agent: str | None
    cells: Mapping[str, Cell | None]
    change: Change
    flips: tuple[RuleFlip, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The grid, regressions first."""

    sets: Mapping[str, RunSet]
    versions: Mapping[str, int]
    lines: tuple[Line, ...]
    warnings: tuple[str, ...]


def compare(store: Store, wanted: Sequence[SetWanted], by: Sequence[str]) -> Comparison:
    """Hold sets of runs against the first of them.

    Args:
        wanted: at least two, each with a name of its own.
        by: what a line stands for: `scenario`, `agent`, or both.

    Raises:
        UsageError: two sets have one name.
        NotThere: a run that was named is not there.
    """
    names = [one.name for one in wanted]
    if len(set(names)) < len(names):
        raise UsageError("two sets have the same name", hint="give each a name of its own")
    sets = {
        one.name: filtered(store, one.narrowed, MOST_RUNS)
        if one.runs is None
        else chosen(store, one.runs)
        for one in wanted
    }
    lines = _lines(sets, by)
    rules = _Rules(store)
    found = [_line(key, cells, rules) for key, cells in lines.items()]
    order = {"worse": 0, "unknown": 1, "better": 2, "same": 3}
    found.sort(key=lambda line: (order[line.change], line.scenario or "", line.agent or ""))
    warnings = [
        f"the set {name} has no run that is over" for name, runs in sets.items() if not runs.rows
    ]
    changed = sorted(key for key, versions in rules.versions.items() if len(versions) > 1)
    warnings += [f"the runs of {key} did not all have the same rules" for key in changed]
    versions = {name: rules.most_versions(name) for name in sets}
    return Comparison(sets, versions, tuple(found), tuple(warnings))


def compare_asked(store: Store, wanted: Sequence[SetWanted], by: Sequence[str]) -> Comparison:
    """As `compare`, for sets that a request names.

    Raises:
        InvalidInput: sets of one name, runs that are not there; all of them with their paths.
    """
    names = [one.name for one in wanted]
    problems = [
        Problem(f"sets[{index}].name", "is the name of another set too")
        for index, name in enumerate(names)
        if name in names[:index]
    ]
    problems += [
        Problem(f"sets[{index}].runs[{place}]", f"there is no run {run[:100]!r}")
        for index, one in enumerate(wanted)
        for place, run in enumerate(one.runs or ())
        if run not in store.find(run)
    ]
    if problems:
        raise InvalidInput("the request is refused", problems)
    return compare(store, wanted, by)


def _lines(sets: Mapping[str, RunSet], by: Sequence[str]) -> dict[Key, dict[str, Cell | None]]:
    """The cells of every line, by what the line stands for."""
    grouped: dict[Key, dict[str, list[RunRow]]] = defaultdict(lambda: defaultdict(list))
    for name, runs in sets.items():
        for row in runs.rows:
            scenario = row.scenario if "scenario" in by else None
            agent = row.agent if "agent" in by else None
            grouped[scenario, agent][name].append(row)
    return {
        key: {name: Cell(tuple(found[name])) if name in found else None for name in sets}
        for key, found in grouped.items()
    }


def _line(key: Key, cells: dict[str, Cell | None], rules: _Rules) -> Line:
    (first_name, first), *others = cells.items()
    flips: list[RuleFlip] = []
    changes: list[Change] = []
    before = rules.of(first_name, first) if first else {}
    for name, cell in others:
        changes.append(_change(first, cell))
        if first is not None and cell is not None:
            flips += _flips(name, before, rules.of(name, cell))
    worst: Sequence[Change] = ("worse", "unknown", "better", "same")
    change = next(each for each in worst if each in changes)
    return Line(*key, cells, change, tuple(sorted(flips, key=lambda flip: flip.change != "worse")))


def _change(first: Cell | None, other: Cell | None) -> Change:
    """How another cell stands against the first: by verdicts, then by compliance."""
    if first is None or other is None or first.pass_rate is None or other.pass_rate is None:
        return "unknown"
    before = (first.pass_rate, first.compliance or 0.0)
    after = (other.pass_rate, other.compliance or 0.0)
    if before == after:
        return "same"
    return "better" if after > before else "worse"


@dataclass(slots=True)
class _Tally:
    """How often a rule passed, and where it did not."""

    passed: int = 0
    judged: int = 0
    runs: int = 0
    failed_in: tuple[str, ...] = ()

    def add(self, run: str, rule: RuleResult) -> None:
        self.runs += 1
        self.judged += rule.status != "error"
        self.passed += rule.status == "passed"
        if rule.status != "passed" and len(self.failed_in) < 5:
            self.failed_in = (*self.failed_in, run)

    def __str__(self) -> str:
        said = f"{self.passed} of {self.judged} passed"
        left = self.runs - self.judged
        return f"{said}, {left} not evaluated" if left else said


class _Rules:
    """Reads the rules of runs, counted by rule."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.versions: dict[str, set[str]] = defaultdict(set)
        self._of_set: dict[tuple[str, str], set[str]] = defaultdict(set)

    def of(self, name: str, cell: Cell) -> dict[str, _Tally]:
        """The rules of the newest judged runs of a cell, by scenario, label and validator."""
        found: dict[str, _Tally] = defaultdict(_Tally)
        for row in cell.judged[:MOST_READ]:
            with there(row.id):
                result = self._store.get(row.id).result
            if result is None:
                continue
            self.versions[row.scenario].add(result.scenario_version)
            self._of_set[name, row.scenario].add(result.scenario_version)
            for rule in result.rules:
                label = f"{row.scenario}: [{rule.index}] {rule.label} ({rule.validator})"
                found[label].add(row.id, rule)
        return found

    def most_versions(self, name: str) -> int:
        """Of the scenario with the most versions in a set: how many."""
        counts = [len(found) for (of, _), found in self._of_set.items() if of == name]
        return max(counts, default=0)


def _flips(name: str, before: dict[str, _Tally], after: dict[str, _Tally]) -> list[RuleFlip]:
    found = []
    for rule in sorted({*before, *after}):
        was, now = before.get(rule, _Tally()), after.get(rule, _Tally())
        rates = share(was.passed, was.judged), share(now.passed, now.judged)
        if rates[0] == rates[1]:
            continue
        change: Change = "unknown"
        if rates[0] is not None and rates[1] is not None:
            change = "better" if rates[1] > rates[0] else "worse"
        shown = [str(each) if each.runs else "-" for each in (was, now)]
        found.append(RuleFlip(rule, name, shown[0], shown[1], change, now.failed_in))
    return found
