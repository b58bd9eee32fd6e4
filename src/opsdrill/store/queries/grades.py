"""Grades, and all that a run is graded again by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Row,
    Select,
    and_,
    bindparam,
    func,
    select,
)

from opsdrill.store.documents import Body
from opsdrill.store.tables import DOCUMENTS, GRADES, RUNS


def put_grades(
    connection: Connection,
    bodies: Mapping[int, Body],
    *,
    cause: str,
    by: str | None,
    created_at: int,
) -> dict[int, int]:
    """Keep a grade behind the others of each of some runs; the number of each, from 1."""
    last = connection.execute(
        select(GRADES.c.run, func.max(GRADES.c.number))
        .where(GRADES.c.run.in_(list(bodies)))
        .group_by(GRADES.c.run)
    )
    numbers = dict.fromkeys(bodies, 1) | {run: int(most) + 1 for run, most in last}
    connection.execute(
        GRADES.insert(),
        [
            {
                "run": run,
                "number": numbers[run],
                "cause": cause,
                "by": by,
                "created_at": created_at,
                "form": body.form,
                "body": body.data,
            }
            for run, body in bodies.items()
        ],
    )
    return numbers


def grades(connection: Connection, run: int) -> Sequence[Row[*tuple[Any, ...]]]:
    return connection.execute(
        select(GRADES).where(GRADES.c.run == run).order_by(GRADES.c.number)
    ).all()


def sealed(connection: Connection, ids: Sequence[str]) -> Sequence[Row[*tuple[Any, ...]]]:
    """What runs are graded again by: spec, job record, answers and latest grade, as bodies."""
    return connection.execute(_sealed(), {"ids": list(ids)}).all()


@cache  # making it takes as long as asking for a hundred runs
def _sealed() -> Select[Any]:
    parts = {
        "spec": (DOCUMENTS.alias("spec"), 0),
        "record": (DOCUMENTS.alias("record"), RUNS.c.attempt),
        "answers": (DOCUMENTS.alias("answers"), RUNS.c.attempt),
    }
    last = (
        select(func.max(GRADES.c.number))
        .where(GRADES.c.run == RUNS.c.number)
        .correlate(RUNS)
        .scalar_subquery()
    )
    source: FromClause = RUNS.outerjoin(
        GRADES, and_(GRADES.c.run == RUNS.c.number, GRADES.c.number == last)
    )
    columns: list[ColumnElement[Any]] = [
        RUNS.c.id,
        RUNS.c.state,
        RUNS.c.scenario,
        GRADES.c.form.label("grade_form"),
        GRADES.c.body.label("grade_body"),
    ]
    for kind, (table, attempt) in parts.items():
        source = source.outerjoin(
            table,
            and_(
                table.c.run == RUNS.c.number,
                table.c.attempt == attempt,
                table.c.kind == kind,
                table.c.name == "",
            ),
        )
        columns += [table.c.form.label(f"{kind}_form"), table.c.body.label(f"{kind}_body")]
    wanted = RUNS.c.id.in_(bindparam("ids", expanding=True))
    return select(*columns).select_from(source).where(wanted)
