"""Grade kept runs again, with their own rules or edited ones, and tell what flips."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from opsdrill.app import documents, scenarios
from opsdrill.app.history import kept_runs, whole_id
from opsdrill.app.wiring import Place
from opsdrill.grading.engine import grade
from opsdrill.model.result import Grade, RuleResult
from opsdrill.patterns import BoundedSearcher, Searcher
from opsdrill.scenarios.load import LoadedScenario
from opsdrill.store.store import RunFilter, Store

PAGE = 500


@dataclass(frozen=True, slots=True)
class Flip:
    """One thing that another grade judges otherwise; `rule` is `verdict` for the run itself."""

    run: str
    rule: str
    before: str
    after: str
    reason: str


@dataclass(frozen=True, slots=True)
class Regraded:
    """What a regrade did: the flips, and what could not be compared."""

    graded: int
    flips: tuple[Flip, ...]
    notes: tuple[str, ...]


def regrade(place: Place, runs: Sequence[str] | None, scenario: str | None) -> Regraded:
    """Add another grade to kept runs; earlier ones stay.

    Args:
        runs: ids, or how they begin; None: every run that has a job record.
        scenario: where the rules are taken from; None: each run's own.

    Raises:
        UsageError: no such run, or no such scenario.
        InvalidInput: the scenario is broken.
    """
    edited = scenarios.one(place, scenario) if scenario else None
    flips: list[Flip] = []
    notes: list[str] = []
    graded = 0
    with kept_runs(place) as store, BoundedSearcher() as searcher:
        names = [whole_id(store, run) for run in runs] if runs else _all(store)
        for name in names:
            before, after, note = _again(store, name, edited, searcher)
            notes += [note] if note else []
            if after is not None:
                graded += 1
                flips += _flips(name, before, after)
    return Regraded(graded, tuple(flips), tuple(notes))


def _all(store: Store) -> Iterator[str]:
    cursor: str | None = None
    while True:
        page = store.page(RunFilter(state="done"), limit=PAGE, cursor=cursor)
        yield from (row.id for row in page.rows)
        cursor = page.cursor
        if cursor is None:
            return


def _again(
    store: Store, name: str, edited: LoadedScenario | None, searcher: Searcher
) -> tuple[Grade | None, Grade | None, str | None]:
    """The latest grade, the new one, and what is to be said about it."""
    kept = store.get(name)
    record = store.record(name)
    if kept.state != "done" or record is None:
        return None, None, f"run {name} has no sealed job record ({kept.state}), it is left out"
    if edited is not None and edited.scenario.key != kept.spec.scenario.key:
        other = f"of {kept.spec.scenario.key}, not of {edited.scenario.key}"
        return None, None, f"run {name} is {other}, it is left out"
    grades = store.grades(name)
    before = grades[-1].grade if grades else None
    after = grade(
        edited.scenario if edited else kept.spec.scenario,
        record,
        store.answers(name),
        searcher,
        scenario_version=edited.version if edited else kept.spec.scenario_version,
    )
    store.add_grade(name, after, cause="regrade")
    note = None
    if before is not None and before.grading_version != after.grading_version:
        versions = f"{before.grading_version} and {after.grading_version}"
        note = f"run {name}: the grades are of different grading versions ({versions})"
    return before, after, note


def _flips(run: str, before: Grade | None, after: Grade) -> list[Flip]:
    if before is None:
        return [Flip(run, "verdict", "-", after.verdict, after.reason)]
    found = []
    if before.verdict != after.verdict:
        found.append(Flip(run, "verdict", before.verdict, after.verdict, after.reason))
    then, now = before.completion, after.completion
    if then.status != now.status:
        found.append(Flip(run, "completion", then.status, now.status, now.reason))
    earlier = {_identity(old): old for old in before.rules}
    for rule in after.rules:
        old = earlier.pop(_identity(rule), None)
        was = old.status if old else "-"
        if was != rule.status:
            found.append(Flip(run, _named(rule), was, rule.status, rule.reason))
    gone = earlier.values()
    return found + [Flip(run, _named(old), old.status, "-", "the rule is gone") for old in gone]


def _identity(rule: RuleResult) -> tuple[int, str]:
    return rule.index, rule.validator


def _named(rule: RuleResult) -> str:
    return f"[{rule.index}] {rule.label}"


def document(found: Regraded) -> bytes:
    """The flips for programs."""
    rows = [asdict(flip) for flip in found.flips]
    return documents.document(
        "regrade", "flips", rows, graded=found.graded, notes=list(found.notes)
    )
