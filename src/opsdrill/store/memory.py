"""A store that forgets everything with its process, for tests and trials."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import RLock

from opsdrill.hosts.lease import LEASE_SECONDS
from opsdrill.model.event import JobEvent
from opsdrill.model.host import ChangedFile, HostAnswer, HostFacts
from opsdrill.model.job import JobRecord
from opsdrill.model.result import PHASES, Grade, Phase, Result, RunState
from opsdrill.model.run import RunSpec
from opsdrill.store import course
from opsdrill.store.cursor import check_limit, decode, encode, microseconds
from opsdrill.store.documents import ANSWERS, GRADE, RECORD, SPEC, dump
from opsdrill.store.files import digest_of
from opsdrill.store.lease_course import Gone
from opsdrill.store.memory_leases import LeaseRows, MemoryLeases
from opsdrill.store.store import Owner, Page, RunFilter, RunRow, Sealed, StoredGrade, StoredRun

FOUND_LIMIT = 20


@dataclass(slots=True)
class _Attempt:
    """What one attempt left behind."""

    phases: dict[str, Phase] = field(default_factory=dict)
    events: dict[int, JobEvent] = field(default_factory=dict)
    record: JobRecord | None = None
    answers: list[HostAnswer] | None = None
    steps: dict[str, list[HostAnswer]] = field(default_factory=dict)
    hosts: dict[str, HostFacts] = field(default_factory=dict)
    changed: dict[str, tuple[ChangedFile, ...]] = field(default_factory=dict)
    result: Result | None = None


@dataclass(slots=True)
class _Run:
    number: int
    spec: RunSpec
    state: RunState = "planned"
    attempt: int = 0
    owner: Owner | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    attempts: dict[int, _Attempt] = field(default_factory=dict)
    grades: list[StoredGrade] = field(default_factory=list)

    def of(self, attempt: int) -> _Attempt:
        return self.attempts.setdefault(attempt, _Attempt())

    @property
    def latest(self) -> _Attempt:
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

    def row(self) -> RunRow:
        spec, result = self.spec, self.result()
        return RunRow(
            id=spec.id,
            batch=spec.batch,
            scenario=spec.scenario.key,
            title=course.clipped(spec.scenario.title),
            agent=str(spec.agent),
            lab=spec.lab.name,
            repeat=spec.repeat,
            state=self.state,
            verdict=result.verdict if result else None,
            fault=result.fault if result else None,
            reason=course.clipped(result.reason) if result else "",
            compliance=course.pair(result.compliance) if result else None,
            remediation=course.pair(result.remediation) if result else None,
            after_agent=bool(result and result.after_agent),
            created_at=spec.created_at,
            ended_at=self.ended_at,
        )


class MemoryStore:
    """A `Store` in this process's memory; several threads may use it at once.

    Args:
        clock: gives the present moment, in UTC.
    """

    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._clock = clock
        self._lock = RLock()
        self._runs: dict[str, _Run] = {}
        self._files: dict[str, bytes] = {}
        self._waiting: set[str] = set()
        """Files that were put for a run which is still to be planned."""
        self._planned = 0
        self._lease_rows = LeaseRows()

    def close(self) -> None:
        pass

    # runs

    def plan(self, spec: RunSpec) -> None:
        course.check_new(spec)
        with self._lock:
            if spec.id in self._runs:
                return
            course.check_files(spec, self._files)
            self._waiting -= {file.digest for file in spec.files}
            self._planned += 1
            self._runs[spec.id] = _Run(self._planned, spec)

    def add(
        self,
        spec: RunSpec,
        record: JobRecord,
        answers: Sequence[HostAnswer],
        result: Result,
        grade: Grade,
    ) -> None:
        course.check_added(spec, result)
        with self._lock:
            if spec.id in self._runs:
                return
            self.plan(spec)
            kept = self._runs[spec.id]
            kept.attempt, kept.started_at = 1, self._clock()
            kept.latest.record, kept.latest.answers = record, list(answers)
            self._end(kept, result, self._clock())
            self._put_grade(kept, grade, "run", None)

    def begin(self, run: str, owner: Owner) -> int:
        with self._lock:
            kept = self._runs[run]
            course.check_begin(run, kept.state)
            kept.state, kept.owner = "running", owner
            kept.started_at, kept.ended_at = self._clock(), None
            kept.attempt += 1
            return kept.attempt

    def phase(self, run: str, attempt: int, phase: Phase) -> None:
        with self._lock:
            self._runs[run].of(attempt).phases[phase.name] = phase

    def finish(self, run: str, result: Result, grade: Grade | None) -> None:
        with self._lock:
            kept = self._runs[run]
            if kept.state in course.OVER:
                return
            self._end(kept, result, self._clock())
            if grade is not None:
                self._put_grade(kept, grade, "run", None)

    def interrupt(self, run: str, reason: str) -> None:
        with self._lock:
            kept = self._runs[run]
            if kept.state in course.OVER:
                return
            now = self._clock()
            change = {"status": "interrupted", "ended_at": now, "reason": reason}
            kept.latest.phases = {
                name: phase.model_copy(update=change) if phase.status == "running" else phase
                for name, phase in kept.latest.phases.items()
            }
            self._end(kept, course.interrupted(kept.spec, reason, kept.phases()), now)

    def running(self) -> list[tuple[str, Owner | None]]:
        with self._lock:
            return [
                (name, kept.owner) for name, kept in self._runs.items() if kept.state == "running"
            ]

    def get(self, run: str) -> StoredRun:
        with self._lock:
            kept = self._runs[run]
            return StoredRun(
                spec=kept.spec,
                state=kept.state,
                attempt=kept.attempt,
                owner=kept.owner,
                created_at=kept.spec.created_at,
                started_at=kept.started_at,
                ended_at=kept.ended_at,
                result=kept.result(),
                phases=kept.phases(),
            )

    def find(self, prefix: str) -> list[str]:
        with self._lock:
            return sorted(name for name in self._runs if name.startswith(prefix))[:FOUND_LIMIT]

    def page(self, filter: RunFilter, *, limit: int = 50, cursor: str | None = None) -> Page:
        after = None if cursor is None else decode(cursor)
        check_limit(limit)
        with self._lock:
            behind = [
                (kept.place, row)
                for kept in self._runs.values()
                if (after is None or kept.place < after) and _wanted(row := kept.row(), filter)
            ]
        behind.sort(key=lambda item: item[0], reverse=True)
        more = len(behind) > limit
        return Page(
            rows=tuple(row for _, row in behind[:limit]),
            cursor=encode(*behind[limit - 1][0]) if more else None,
        )

    def delete(self, run: str) -> None:
        with self._lock:
            course.check_delete(run, self._runs[run].state)
            gone = {file.digest for file in self._runs.pop(run).spec.files}
            used = {file.digest for kept in self._runs.values() for file in kept.spec.files}
            for digest in gone - used - self._waiting:
                self._files.pop(digest, None)

    # evidence

    def append_events(self, run: str, attempt: int, events: Sequence[tuple[int, JobEvent]]) -> None:
        with self._lock:
            kept = self._runs[run].of(attempt).events
            for seq, event in events:
                kept.setdefault(seq, event)

    def events(
        self, run: str, *, attempt: int | None = None, after: int = -1
    ) -> Iterable[tuple[int, JobEvent]]:
        with self._lock:
            kept = self._runs[run]
            events = kept.of(kept.attempt if attempt is None else attempt).events
            return iter(sorted((item for item in events.items() if item[0] > after), key=_seq))

    def save_record(self, run: str, attempt: int, record: JobRecord) -> None:
        with self._lock:
            kept = self._runs[run].of(attempt)
            kept.record = kept.record or record

    def record(self, run: str) -> JobRecord | None:
        with self._lock:
            return self._runs[run].latest.record

    def save_answers(self, run: str, attempt: int, answers: Sequence[HostAnswer]) -> None:
        with self._lock:
            kept = self._runs[run].of(attempt)
            if kept.answers is None:
                kept.answers = list(answers)

    def answers(self, run: str) -> list[HostAnswer]:
        with self._lock:
            return list(self._runs[run].latest.answers or ())

    def save_steps(self, run: str, attempt: int, phase: str, answers: Sequence[HostAnswer]) -> None:
        with self._lock:
            self._runs[run].of(attempt).steps[phase] = list(answers)

    def steps(self, run: str, phase: str) -> list[HostAnswer]:
        with self._lock:
            return list(self._runs[run].latest.steps.get(phase, ()))

    def save_host(
        self,
        run: str,
        attempt: int,
        facts: HostFacts,
        changed: Sequence[ChangedFile] | None = None,
    ) -> None:
        with self._lock:
            kept = self._runs[run].of(attempt)
            kept.hosts[facts.name] = facts
            if changed is not None:
                kept.changed[facts.name] = tuple(changed)

    def hosts(self, run: str) -> list[tuple[HostFacts, tuple[ChangedFile, ...] | None]]:
        with self._lock:
            kept = self._runs[run].latest
            return [(facts, kept.changed.get(name)) for name, facts in kept.hosts.items()]

    # grades

    def add_grade(self, run: str, grade: Grade, *, cause: str, by: str | None = None) -> int:
        with self._lock:
            return self._put_grade(self._runs[run], grade, cause, by)

    def add_grades(self, grades: Mapping[str, Grade], *, cause: str, by: str | None = None) -> None:
        with self._lock:
            found = {run: self._runs[run] for run in grades}
            for run, grade in grades.items():
                self._put_grade(found[run], grade, cause, by)

    def sealed(self, runs: Sequence[str]) -> list[Sealed]:
        with self._lock:
            return [self._runs[run].sealed() for run in runs]

    def grades(self, run: str) -> list[StoredGrade]:
        with self._lock:
            return list(self._runs[run].grades)

    # files

    def put_file(self, content: bytes) -> str:
        digest = digest_of(content)
        with self._lock:
            self._files[digest] = bytes(content)
            self._waiting.add(digest)
        return digest

    def file(self, digest: str) -> bytes:
        with self._lock:
            return self._files[digest]

    # lasting hosts

    def leases(self, owner: Owner, gone: Gone, *, seconds: float = LEASE_SECONDS) -> MemoryLeases:
        return MemoryLeases(self._lease_rows, owner, gone, self._clock, seconds)

    # parts

    def _end(self, kept: _Run, result: Result, ended_at: datetime) -> None:
        kept.state, kept.ended_at = result.state, ended_at
        kept.latest.result = result

    def _put_grade(self, kept: _Run, grade: Grade, cause: str, by: str | None) -> int:
        number = len(kept.grades) + 1
        kept.grades.append(StoredGrade(number, grade, cause, self._clock(), by))
        return number


def _seq(item: tuple[int, JobEvent]) -> int:
    return item[0]


def _wanted(row: RunRow, filter: RunFilter) -> bool:
    return all(
        wanted is None or getattr(row, name) == wanted
        for name in ("scenario", "agent", "state", "verdict", "batch")
        for wanted in [getattr(filter, name)]
    )
