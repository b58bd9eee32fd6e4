"""A store that forgets everything with its process, for tests and trials."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from threading import RLock

from opsdrill.errors import NotThere
from opsdrill.hosts.lease import LEASE_SECONDS
from opsdrill.model.event import JobEvent
from opsdrill.model.host import ChangedFile, HostAnswer, HostFacts
from opsdrill.model.job import JobRecord
from opsdrill.model.result import Grade, Phase, Result, RunState
from opsdrill.model.run import RunSpec
from opsdrill.store import course
from opsdrill.store.cursor import check_limit, decode, encode
from opsdrill.store.lease_course import Gone
from opsdrill.store.memory_access import MemoryAccess
from opsdrill.store.memory_files import MemoryFiles
from opsdrill.store.memory_leases import LeaseRows, MemoryLeases
from opsdrill.store.memory_requests import MemoryRequests
from opsdrill.store.memory_runs import MemoryRun, batch_row, fits
from opsdrill.store.memory_shelf import MemoryShelf
from opsdrill.store.store import (
    BatchPage,
    BatchRow,
    Order,
    Owner,
    Page,
    RunFilter,
    RunRow,
    Sealed,
    StoredGrade,
    StoredRun,
)

FOUND_LIMIT = 20


class MemoryStore:
    """A `Store` in this process's memory; several threads may use it at once.

    Args:
        clock: gives the present moment, in UTC.
    """

    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._clock = clock
        self._lock = RLock()
        self._runs: dict[str, MemoryRun] = {}
        self._files = MemoryFiles()
        self._planned = 0
        self._shelf = MemoryShelf(self._files, self._lock, clock)
        self._access = MemoryAccess()
        self._requests = MemoryRequests()
        self._lease_rows = LeaseRows()

    def close(self) -> None:
        pass

    # runs

    def plan(self, spec: RunSpec, owner: Owner | None = None) -> None:
        self.plan_all([spec], owner)

    def plan_all(self, specs: Sequence[RunSpec], owner: Owner | None = None) -> set[str]:
        for spec in specs:
            course.check_new(spec)
        with self._lock:
            new = [spec for spec in specs if spec.id not in self._runs]
            for spec in new:
                self._files.check(f"run {spec.id}", spec.files)
            for spec in new:
                self._files.use(("run", spec.id), f"run {spec.id}", spec.files)
                self._planned += 1
                self._runs[spec.id] = MemoryRun(self._planned, spec, owner=owner)
            return {spec.id for spec in specs if self._runs[spec.id].state == "planned"}

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
        return self._owned("running")

    def planned(self) -> list[tuple[str, Owner | None]]:
        return self._owned("planned")

    def _owned(self, state: RunState) -> list[tuple[str, Owner | None]]:
        with self._lock:
            return [(name, kept.owner) for name, kept in self._runs.items() if kept.state == state]

    def get(self, run: str) -> StoredRun:
        with self._lock:
            return self._runs[run].stored()

    def find(self, prefix: str) -> list[str]:
        with self._lock:
            return sorted(name for name in self._runs if name.startswith(prefix))[:FOUND_LIMIT]

    def page(
        self,
        filter: RunFilter,
        *,
        limit: int = 50,
        cursor: str | None = None,
        order: Order = "-created_at",
        count_to: int | None = None,
    ) -> Page:
        after = None if cursor is None else decode(cursor)
        check_limit(limit)
        newest_first = order == "-created_at"
        with self._lock:
            found = [(kept.place, kept.row()) for kept in self._wanted(filter)]
        behind = [
            item
            for item in sorted(found, key=_place, reverse=newest_first)
            if after is None or (item[0] < after if newest_first else item[0] > after)
        ]
        more = len(behind) > limit
        return Page(
            rows=tuple(row for _, row in behind[:limit]),
            cursor=encode(*behind[limit - 1][0]) if more else None,
            count=None if count_to is None else min(len(found), count_to),
        )

    def count(self, filter: RunFilter, at_most: int = 10_000) -> int:
        with self._lock:
            return min(at_most, len(self._wanted(filter)))

    def batches(self, *, limit: int = 50, cursor: str | None = None) -> BatchPage:
        after = None if cursor is None else decode(cursor)
        check_limit(limit)
        runs: dict[str, list[MemoryRun]] = {}
        with self._lock:
            for kept in self._runs.values():
                if kept.spec.batch is not None:
                    runs.setdefault(kept.spec.batch, []).append(kept)
            # A batch stands where its first run stands.
            places = {min(kept.place for kept in group): batch for batch, group in runs.items()}
            behind = [place for place in sorted(places, reverse=True) if not after or place < after]
            rows = tuple(batch_row(places[at], runs[places[at]]) for at in behind[:limit])
        return BatchPage(rows, encode(*behind[limit - 1]) if len(behind) > limit else None)

    def batch(self, id: str) -> BatchRow:
        with self._lock:
            runs = self._wanted(RunFilter(batch=id))
            if not runs:
                raise NotThere("batch", id)
            return batch_row(id, runs)

    def delete(self, run: str) -> None:
        with self._lock:
            course.check_delete(run, self._runs[run].state)
            del self._runs[run]
            self._files.leave(("run", run))

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

    def record_size(self, run: str) -> int:
        with self._lock:
            return self._runs[run].latest.record_size

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
        with self._lock:
            return self._files.put(content)

    def file(self, digest: str) -> bytes:
        with self._lock:
            return self._files.read(digest)

    # lasting hosts

    def leases(self, owner: Owner, gone: Gone, *, seconds: float = LEASE_SECONDS) -> MemoryLeases:
        return MemoryLeases(self._lease_rows, owner, gone, self._clock, seconds)

    # what an API needs beside the runs

    def shelf(self) -> MemoryShelf:
        return self._shelf

    def access(self) -> MemoryAccess:
        return self._access

    def requests(self) -> MemoryRequests:
        return self._requests

    # parts

    def _wanted(self, filter: RunFilter) -> list[MemoryRun]:
        return [kept for kept in self._runs.values() if fits(kept, filter)]

    def _end(self, kept: MemoryRun, result: Result, ended_at: datetime) -> None:
        kept.state, kept.ended_at = result.state, ended_at
        kept.latest.result = result

    def _put_grade(self, kept: MemoryRun, grade: Grade, cause: str, by: str | None) -> int:
        number = len(kept.grades) + 1
        kept.grades.append(StoredGrade(number, grade, cause, self._clock(), by))
        return number


def _seq(item: tuple[int, JobEvent]) -> int:
    return item[0]


def _place(item: tuple[tuple[int, int], RunRow]) -> tuple[int, int]:
    return item[0]
