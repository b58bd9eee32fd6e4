"""Grades in the database, and all that a run is graded again by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row

from opsdrill.model.result import Grade
from opsdrill.store import documents, queries, rows
from opsdrill.store.bodies import Bodies, Prepared
from opsdrill.store.cursor import microseconds, moment
from opsdrill.store.database import Database
from opsdrill.store.documents import Body
from opsdrill.store.evidence import SqlEvidence
from opsdrill.store.store import Sealed, StoredGrade


class SqlGrades(SqlEvidence):
    """The part of `SqlStore` that keeps grades."""

    def __init__(self, database: Database, bodies: Bodies, clock: Callable[[], datetime]) -> None:
        super().__init__(database, bodies)
        self._clock = clock

    def add_grade(self, run: str, grade: Grade, *, cause: str, by: str | None = None) -> int:
        return self._add_grades({run: grade}, cause, by)[run]

    def add_grades(self, grades: Mapping[str, Grade], *, cause: str, by: str | None = None) -> None:
        self._add_grades(grades, cause, by)

    def _add_grades(
        self, grades: Mapping[str, Grade], cause: str, by: str | None
    ) -> dict[str, int]:
        """Keep grades behind those of their runs; the number of each."""
        prepared = {
            run: self._bodies.prepare(documents.GRADE, grade) for run, grade in grades.items()
        }
        with self._database.write() as connection:
            found = queries.runs_to_change(connection, list(grades))
            judged = {
                found[run].number: rows.judged(grade)
                for run, grade in grades.items()
                if found[run].state == "done"
            }
            queries.set_runs(connection, judged)
            for run, body in prepared.items():
                if body.content is not None:
                    self._bodies.admit(connection, found[run].number, [body])
            bodies = {found[run].number: body.body for run, body in prepared.items()}
            numbers = queries.put_grades(
                connection, bodies, cause=cause, by=by, created_at=self._now()
            )
        return {run: numbers[found[run].number] for run in grades}

    def grades(self, run: str) -> list[StoredGrade]:
        with self._database.read() as connection:
            number, _ = queries.run_number(connection, run)
            found = queries.grades(connection, number)
        return [self._grade(row) for row in found]

    def sealed(self, runs: Sequence[str]) -> list[Sealed]:
        with self._database.read() as connection:
            found = {row.id: row for row in queries.sealed(connection, runs)}
        return [self._sealed(found[run]) for run in runs]

    def _sealed(self, row: Row[*tuple[Any, ...]]) -> Sealed:
        def content(kind: str, what: str) -> bytes | None:
            form, data = getattr(row, f"{kind}_form"), getattr(row, f"{kind}_body")
            if form is None:
                return None
            return self._bodies.content(Body(form, bytes(data)), f"the {what} of run {row.id}")

        return Sealed(
            run=row.id,
            state=row.state,
            scenario=row.scenario,
            spec=content("spec", "spec") or b"",
            record=content("record", "job record"),
            answers=content("answers", "answers"),
            latest=content("grade", "latest grade"),
        )

    def _put_first(self, connection: Connection, run: int, body: Prepared) -> None:
        """Keep the grade that a run ended with."""
        self._bodies.admit(connection, run, [body])
        queries.put_grades(
            connection, {run: body.body}, cause="run", by=None, created_at=self._now()
        )

    def _grade(self, row: Row[*tuple[Any, ...]]) -> StoredGrade:
        what = f"grade {row.number} of run {row.run}"
        return StoredGrade(
            number=row.number,
            grade=self._bodies.read(documents.GRADE, queries.body_of(row), what),
            cause=row.cause,
            created_at=moment(row.created_at),
            by=row.by,
        )

    def _now(self) -> int:
        return microseconds(self._clock())
