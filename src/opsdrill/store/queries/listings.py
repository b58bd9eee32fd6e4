"""Listings of runs and of batches: each walks one index in the order of its page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Row,
    Select,
    and_,
    func,
    select,
    tuple_,
)

from opsdrill.store.course import clipped_mark
from opsdrill.store.cursor import microseconds
from opsdrill.store.store import Order, RunFilter
from opsdrill.store.tables import BATCHES, MARKS, RUNS

LISTED = (
    RUNS.c.number, RUNS.c.id, RUNS.c.batch, RUNS.c.scenario, RUNS.c.title, RUNS.c.agent,
    RUNS.c.lab, RUNS.c.repeat, RUNS.c.state, RUNS.c.verdict, RUNS.c.fault, RUNS.c.reason,
    RUNS.c.compliance_passed, RUNS.c.compliance_total, RUNS.c.remediation_passed,
    RUNS.c.remediation_total, RUNS.c.after_agent, RUNS.c.created_at, RUNS.c.ended_at,
)  # fmt: skip
Place = tuple[int, int]
"""Where a row stands: its creation in microseconds, and its number."""


def listed(
    connection: Connection,
    filter: RunFilter,
    limit: int,
    after: Place | None,
    order: Order = "-created_at",
) -> Sequence[Row[*tuple[Any, ...]]]:
    """Rows of a listing, behind the row that stands at `after`."""
    statement, created_at, number = _narrowed(select(*LISTED), filter)
    newest_first = order == "-created_at"
    if after is not None:
        here, there = tuple_(created_at, number), tuple_(*after)
        statement = statement.where(here < there if newest_first else here > there)
    sorted_by = (
        (created_at.desc(), number.desc()) if newest_first else (created_at.asc(), number.asc())
    )
    return connection.execute(statement.order_by(*sorted_by).limit(limit)).all()


def counted(connection: Connection, filter: RunFilter, at_most: int) -> int:
    """How many rows a listing has, up to a bound."""
    statement, _, number = _narrowed(select(RUNS.c.number), filter)
    found = statement.with_only_columns(number).limit(at_most).subquery()
    return connection.execute(select(func.count()).select_from(found)).scalar_one()


def _narrowed(
    statement: Select[*tuple[Any, ...]], filter: RunFilter
) -> tuple[Select[*tuple[Any, ...]], ColumnElement[int], ColumnElement[int]]:
    """A SELECT of the rows wanted, and the two columns that it is sorted by."""
    created_at: ColumnElement[int] = RUNS.c.created_at
    number: ColumnElement[int] = RUNS.c.number
    for place, (name, value) in enumerate(_narrowest_first(filter)):
        if isinstance(name, str):
            # A database without statistics may walk the widest index; `|| ''` leaves it the
            # first one only, and the other columns are compared row by row.
            column = RUNS.c[name] if place == 0 else RUNS.c[name].concat("")
            statement = statement.where(column == value)
        elif place == 0:
            statement = statement.join(MARKS, MARKS.c.run == RUNS.c.number)
            statement = statement.where(_is_mark(*name, value))
            created_at, number = MARKS.c.created_at, MARKS.c.run
        else:
            other = MARKS.alias()
            has = select(other.c.run).where(other.c.run == RUNS.c.number)
            statement = statement.where(has.where(_is_mark(*name, value, table=other)).exists())
    if filter.since is not None:
        statement = statement.where(created_at >= microseconds(filter.since))
    if filter.until is not None:
        statement = statement.where(created_at < microseconds(filter.until))
    return statement, created_at, number


def _is_mark(kind: str, name: str, value: str, *, table: FromClause = MARKS) -> ColumnElement[bool]:
    return and_(table.c.kind == kind, table.c.name == name, table.c.value == value)


def _narrowest_first(filter: RunFilter) -> Iterator[tuple[str | tuple[str, str], str]]:
    """What must hold, a column or a mark with its value, the one that fewest runs have first."""
    # Nearly all runs are done; few are in any other state.
    rare = filter.state not in (None, "done")
    if rare:
        yield "state", filter.state or ""
    if filter.batch is not None:
        yield "batch", filter.batch
    for name, value in filter.labels:
        yield ("label", name), value
    if filter.scenario is not None:
        yield "scenario", filter.scenario
    if filter.scenario_tag is not None:
        yield ("tag", clipped_mark(filter.scenario_tag)), ""
    for column in ("agent", "fault", "verdict"):
        wanted = getattr(filter, column)
        if wanted is not None:
            yield column, wanted
    if not rare and filter.state is not None:
        yield "state", filter.state


def batches(
    connection: Connection, limit: int, after: Place | None
) -> Sequence[Row[*tuple[Any, ...]]]:
    """Batches, the newest first, behind the one that stands at `after`."""
    statement = select(BATCHES)
    if after is not None:
        here = tuple_(BATCHES.c.created_at, BATCHES.c.number)
        statement = statement.where(here < tuple_(*after))
    sorted_by = (BATCHES.c.created_at.desc(), BATCHES.c.number.desc())
    return connection.execute(statement.order_by(*sorted_by).limit(limit)).all()


def batch(connection: Connection, id: str) -> Row[*tuple[Any, ...]] | None:
    return connection.execute(select(BATCHES).where(BATCHES.c.id == id)).first()


def batch_runs(connection: Connection, ids: Sequence[str]) -> Sequence[Row[*tuple[Any, ...]]]:
    """How many runs of each batch are alike in scenario, agent, state and verdict."""
    alike = (RUNS.c.batch, RUNS.c.state, RUNS.c.verdict, RUNS.c.scenario, RUNS.c.agent)
    return connection.execute(
        select(*alike, func.count().label("runs")).where(RUNS.c.batch.in_(ids)).group_by(*alike)
    ).all()
