"""Runs in memory: what a store keeps of each, and how it is listed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from opsdrill.model.event import JOB_EVENT, JobEvent
from opsdrill.model.host import ChangedFile, HostAnswer, HostFacts
from opsdrill.model.job import JobRecord
from opsdrill.model.result import PHASES, Phase, Result, RunState
from opsdrill.model.run import RunSpec
from opsdrill.model.scenario import Scenario
from opsdrill.store import course
from opsdrill.store.cursor import microseconds
from opsdrill.store.documents import ANSWERS, GRADE, RECORD, SPEC, dump
from opsdrill.store.store import BatchRow, Owner, RunFilter, RunRow, Sealed, StoredGrade, StoredRun


@dataclass(slots=True)
class MemoryAttempt:
    """What one attempt left behind."""

    phases: dict[str, Phase] = field(default_factory=dict)
    events: dict[int, JobEvent] = field(default_factory=dict)
    record: JobRecord | None = None
    answers: list[HostAnswer] | None = None
    steps: dict[str, list[HostAnswer]] = field(default_factory=dict)
    hosts: dict[str, HostFacts] = field(default_factory=dict)
    changed: dict[str, tuple[ChangedFile, ...]] = field(default_factory=dict)
    result: Result | None = None

    @property
    def record_size(self) -> int:
        if self.record is not None:
            return len(dump(RECORD, self.record))
        return sum(len(dump(JOB_EVENT, event)) for event in self.events.values())


@dataclass(slots=True)
class MemoryRun:
    """A run with all its attempts and grades; `number` says how many were planned before."""

    number: int
    spec: RunSpec
    state: RunState = "planned"
    attempt: int = 0
    owner: Owner | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    attempts: dict[int, MemoryAttempt] = field(default_factory=dict)
    grades: list[StoredGrade] = field(default_factory=list)

    def of(self, attempt: int) -> MemoryAttempt:
        return self.attempts.setdefault(attempt, MemoryAttempt())

    @property
    def latest(self) -> MemoryAttempt:
        return self.of(self.attempt)

    @property
    def place(self) -> tuple[int, int]:
        """Where it stands in a listing."""
        return microseconds(self.spec.created_at), self.number

    def phases(self) -> tuple[Phase, ...]:
        found = self.latest.phases.values()
        return tuple(sorted(found, key=lambda phase: PHASES.index(phase.name)))

    def result(self) -> Result | None:
        result = self.latest.result
        if result is None or self.state != "done":
            return result
        if not self.grades or self.grades[-1].cause == "run":
            return result
        first = self.grades[0].grade if self.grades[0].cause == "run" else None
        return course.regraded(result, first, self.grades[-1].grade)

    def sealed(self) -> Sealed:
        kept, grade = self.latest, self.grades[-1].grade if self.grades else None
        answers = None if kept.answers is None else tuple(kept.answers)
        return Sealed(
            run=self.spec.id,
            state=self.state,
            scenario=self.spec.scenario.key,
            spec=dump(SPEC, self.spec),
            record=None if kept.record is None else dump(RECORD, kept.record),
            answers=None if answers is None else dump(ANSWERS, answers),
            latest=None if grade is None else dump(GRADE, grade),
        )

    def stored(self) -> StoredRun:
        return StoredRun(
            spec=self.spec,
            state=self.state,
            attempt=self.attempt,
            owner=self.owner,
            created_at=self.spec.created_at,
            started_at=self.started_at,
            ended_at=self.ended_at,
            result=self.result(),
            phases=self.phases(),
        )

    def row(self) -> RunRow:
        row = self.stored().row()
        return replace(row, title=course.clipped(row.title), reason=course.clipped(row.reason))


def fits(kept: MemoryRun, filter: RunFilter) -> bool:
    """Whether a listing that is narrowed so has this run."""
    spec, row = kept.spec, kept.row()
    return (
        all(
            wanted is None or getattr(row, name) == wanted
            for name in ("scenario", "agent", "lab", "state", "verdict", "batch", "fault")
            for wanted in [getattr(filter, name)]
        )
        and _has_tag(spec.scenario, filter.scenario_tag)
        and all(spec.labels.get(name) == value for name, value in filter.labels)
        and (filter.since is None or spec.created_at >= filter.since)
        and (filter.until is None or spec.created_at < filter.until)
    )


def _has_tag(scenario: Scenario, tag: str | None) -> bool:
    known = (course.clipped_mark(one) for one in scenario.tags)
    return tag is None or course.clipped_mark(tag) in known


def batch_row(id: str, runs: Sequence[MemoryRun]) -> BatchRow:
    """A batch of these runs."""
    rows = [kept.row() for kept in runs]
    return BatchRow(
        id=id,
        created_at=min(row.created_at for row in rows),
        runs=len(rows),
        states=Counter(row.state for row in rows),
        verdicts=Counter(row.verdict for row in rows if row.verdict is not None),
        scenarios=tuple(sorted({row.scenario for row in rows})),
        agents=tuple(sorted({row.agent for row in rows})),
        by=min(runs, key=lambda kept: kept.place).spec.labels.get("by"),
    )
