"""The store in a database, SQLite or PostgreSQL, beside its folder of files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row

from opsdrill.errors import NotThere, StoreDamaged
from opsdrill.hosts.lease import LEASE_SECONDS
from opsdrill.model.host import HostAnswer
from opsdrill.model.job import JobRecord
from opsdrill.model.result import Grade, Phase, Result
from opsdrill.model.run import RunSpec
from opsdrill.store import course, documents, queries, rows
from opsdrill.store.bodies import Bodies, Prepared
from opsdrill.store.cursor import check_limit, decode, encode, moment
from opsdrill.store.database import Database
from opsdrill.store.files import Files
from opsdrill.store.grades import SqlGrades
from opsdrill.store.lease_course import Gone
from opsdrill.store.leases import SqlLeases
from opsdrill.store.schema import prepare
from opsdrill.store.sql_access import SqlAccess
from opsdrill.store.sql_files import SqlFiles
from opsdrill.store.sql_requests import SqlRequests
from opsdrill.store.sql_shelf import SqlShelf
from opsdrill.store.store import (
    BatchPage,
    BatchRow,
    Order,
    Owner,
    Page,
    RunFilter,
    StoredRun,
)

FOUND_LIMIT = 20


class SqlStore(SqlGrades):
    """A `Store` in a database; several threads and processes may use one at once.

    Args:
        url: an SQLAlchemy URL, e.g. `sqlite:////data/store.db`.
        files: the folder of files.
        clock: gives the present moment, in UTC.

    Raises:
        StoreTooNew: a later OpsDrill wrote it.
        StoreError: it cannot be opened; says why.
    """

    def __init__(
        self, url: str, files: Path, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        folder = Files(files)
        super().__init__(Database(url), Bodies(folder), clock)
        self._files = SqlFiles(self._database, folder, clock)
        self._shelf = SqlShelf(self._database, self._files, clock)
        try:
            prepare(self._database, files)
        except BaseException:
            self._database.close()
            raise
        folder.sweep()

    def close(self) -> None:
        self._database.close()

    # runs

    def plan(self, spec: RunSpec, owner: Owner | None = None) -> None:
        self.plan_all([spec], owner)

    def plan_all(self, specs: Sequence[RunSpec], owner: Owner | None = None) -> set[str]:
        bodies: dict[str, Prepared] = {}
        for spec in specs:
            course.check_new(spec)
            bodies[spec.id] = self._bodies.prepare(documents.SPEC, spec)
        if not bodies:
            return set()
        with self._database.write() as connection:
            numbers = queries.insert_runs(connection, specs, rows.owned(owner) if owner else {})
            new = [spec for spec in specs if spec.id in numbers]
            digests = {file.digest for spec in new for file in spec.files}
            known = queries.known_files(connection, digests, keep=True)
            for spec in new:
                course.check_files(f"run {spec.id}", spec.files, known)
                run, body = numbers[spec.id], bodies[spec.id]
                queries.use_files(connection, run, {file.digest for file in spec.files})
                self._bodies.admit(connection, run, [body])
                queries.put_document(connection, run, 0, "spec", body.body)
            queries.planned_files(connection, digests)
            return queries.ids_in(connection, bodies.keys(), "planned")

    def add(
        self,
        spec: RunSpec,
        record: JobRecord,
        answers: Sequence[HostAnswer],
        result: Result,
        grade: Grade,
    ) -> None:
        course.check_added(spec, result)
        bodies = {
            **self._record_bodies(record),
            "answers": self._bodies.prepare(documents.ANSWERS, tuple(answers)),
        }
        planned = self._bodies.prepare(documents.SPEC, spec)
        body = self._bodies.prepare(documents.GRADE, grade)
        now = self._now()
        values = {"attempt": 1, "started_at": now}
        with self._database.write() as connection:
            run = queries.insert_runs(connection, [spec], values).get(spec.id)
            if run is None:
                return
            self._bodies.admit(connection, run, [planned, *bodies.values()])
            queries.put_document(connection, run, 0, "spec", planned.body)
            for kind, part in bodies.items():
                queries.put_document(connection, run, 1, kind, part.body)
            self._end(connection, queries.run_of(connection, spec.id), result, now)
            self._put_first(connection, run, body)

    def begin(self, run: str, owner: Owner) -> int:
        with self._database.write() as connection:
            row = queries.run_of(connection, run, change=True)
            course.check_begin(run, row.state)
            attempt = int(row.attempt) + 1
            values: dict[str, object] = {
                "state": "running",
                "attempt": attempt,
                "reason": "",
                "started_at": self._now(),
                "ended_at": None,
            }
            queries.set_run(connection, row.number, values | rows.owned(owner))
        return attempt

    def phase(self, run: str, attempt: int, phase: Phase) -> None:
        with self._database.write() as connection:
            number, _ = queries.run_number(connection, run, keep=True)
            queries.put_phase(connection, number, attempt, rows.phase_columns(phase))

    def finish(self, run: str, result: Result, grade: Grade | None) -> None:
        with self._database.write() as connection:
            row = queries.run_of(connection, run, change=True)
            if row.state not in course.OVER:
                self._end(connection, row, result, self._now())
                if grade is not None:
                    body = self._bodies.prepare(documents.GRADE, grade)
                    self._put_first(connection, row.number, body)

    def interrupt(self, run: str, reason: str) -> None:
        with self._database.write() as connection:
            row = queries.run_of(connection, run, change=True)
            if row.state in course.OVER:
                return
            now = self._now()
            queries.interrupt_phases(connection, row.number, row.attempt, now, reason)
            spec = self._spec(connection, row)
            phases = rows.phases(queries.phases(connection, row.number, row.attempt))
            self._end(connection, row, course.interrupted(spec, reason, phases), now)

    def running(self) -> list[tuple[str, Owner | None]]:
        with self._database.ask() as connection:
            return [(row.id, rows.owner(row)) for row in queries.owned(connection, "running")]

    def planned(self) -> list[tuple[str, Owner | None]]:
        with self._database.ask() as connection:
            return [(row.id, rows.owner(row)) for row in queries.owned(connection, "planned")]

    def get(self, run: str) -> StoredRun:
        with self._database.read() as connection:
            row = queries.run_of(connection, run)
            return StoredRun(
                spec=self._spec(connection, row),
                state=row.state,
                attempt=row.attempt,
                owner=rows.owner(row),
                created_at=moment(row.created_at),
                started_at=rows.maybe_moment(row.started_at),
                ended_at=rows.maybe_moment(row.ended_at),
                result=self._result(connection, row),
                phases=rows.phases(queries.phases(connection, row.number, row.attempt)),
            )

    def find(self, prefix: str) -> list[str]:
        with self._database.ask() as connection:
            return queries.ids_from(connection, prefix, FOUND_LIMIT)

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
        count: int | None = None
        with self._database.ask() as connection:
            listing = queries.Listing(connection, filter)
            found = listing.rows(limit + 1, after, order)
            if count_to is not None:
                whole = after is None and len(found) <= limit
                count = min(len(found), count_to) if whole else listing.count(count_to)
        kept = tuple(rows.listed(row) for row in found[:limit])
        return Page(kept, _cursor(found, limit), count)

    def count(self, filter: RunFilter, at_most: int = 10_000) -> int:
        with self._database.ask() as connection:
            return queries.Listing(connection, filter).count(at_most)

    def batches(self, *, limit: int = 50, cursor: str | None = None) -> BatchPage:
        after = None if cursor is None else decode(cursor)
        check_limit(limit)
        with self._database.read() as connection:
            found = queries.batches(connection, limit + 1, after)
            return BatchPage(_batches(connection, found[:limit]), _cursor(found, limit))

    def batch(self, id: str) -> BatchRow:
        with self._database.read() as connection:
            row = queries.batch(connection, id)
            if row is None:
                raise NotThere("batch", id)
            return _batches(connection, [row])[0]

    def delete(self, run: str) -> None:
        with self._database.write() as connection:
            row = queries.run_of(connection, run, change=True)
            course.check_delete(run, row.state)
            used = queries.used_files(connection, row.number)
            queries.delete_run(connection, row.number, row.batch)
            unused = self._files.forget_unused(connection, used)
        self._files.remove(unused)

    # files

    def put_file(self, content: bytes) -> str:
        return self._files.put(content)

    def file(self, digest: str) -> bytes:
        return self._files.read(digest)

    # lasting hosts

    def leases(self, owner: Owner, gone: Gone, *, seconds: float = LEASE_SECONDS) -> SqlLeases:
        return SqlLeases(self._database, owner, gone, self._clock, seconds)

    # what an API needs beside the runs

    def shelf(self) -> SqlShelf:
        return self._shelf

    def access(self) -> SqlAccess:
        return SqlAccess(self._database)

    def requests(self) -> SqlRequests:
        return SqlRequests(self._database)

    # parts

    def _spec(self, connection: Connection, row: Row[*tuple[Any, ...]]) -> RunSpec:
        body = queries.document(connection, row.number, 0, "spec")
        if body is None:
            raise StoreDamaged(f"run {row.id} has no spec")
        return self._bodies.read(documents.SPEC, body, f"the spec of run {row.id}")

    def _result(self, connection: Connection, row: Row[*tuple[Any, ...]]) -> Result | None:
        body = queries.document(connection, row.number, row.attempt, "result")
        if body is None or row.state not in course.OVER:
            return None
        result = self._bodies.read(documents.RESULT, body, f"the result of run {row.id}")
        grades = queries.grades(connection, row.number) if row.state == "done" else ()
        if not grades or grades[-1].cause == "run":
            return result
        latest = self._grade(grades[-1]).grade
        first = self._grade(grades[0]).grade if grades[0].cause == "run" else None
        return course.regraded(result, first, latest)

    def _end(
        self, connection: Connection, row: Row[*tuple[Any, ...]], result: Result, ended_at: int
    ) -> None:
        body = self._bodies.prepare(documents.RESULT, result)
        self._bodies.admit(connection, row.number, [body])
        queries.put_document(connection, row.number, row.attempt, "result", body.body)
        values = {"state": result.state, "ended_at": ended_at, **rows.judged(result)}
        queries.set_run(connection, row.number, values)


def _cursor(found: Sequence[Row[*tuple[Any, ...]]], limit: int) -> str | None:
    """The cursor behind a page, of rows that are one more than it where there is a next one."""
    if len(found) <= limit:
        return None
    return encode(found[limit - 1].created_at, found[limit - 1].number)


def _batches(
    connection: Connection, found: Sequence[Row[*tuple[Any, ...]]]
) -> tuple[BatchRow, ...]:
    ids = [row.id for row in found]
    counts = queries.batch_counts(connection, ids)
    scenarios = queries.batch_values(connection, ids, "scenario")
    agents = queries.batch_values(connection, ids, "agent")
    starters = queries.batch_starters(connection, ids)
    return rows.batches(found, counts, scenarios, agents, starters)
