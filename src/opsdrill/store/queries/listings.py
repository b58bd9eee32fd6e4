"""Listings of runs and of batches: each walks one index in the order of its page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Row,
    ScalarSelect,
    Select,
    and_,
    func,
    select,
    true,
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
FEW = 3000
"""How far the runs that have something are counted, to learn what fewest have."""
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
    statement, created_at, number = _narrowed(connection, select(*LISTED), filter)
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
    statement, _, number = _narrowed(connection, select(RUNS.c.number), filter)
    found = statement.with_only_columns(number).limit(at_most).subquery()
    return connection.execute(select(func.count()).select_from(found)).scalar_one()


def _narrowed(
    connection: Connection, statement: Select[*tuple[Any, ...]], filter: RunFilter
) -> tuple[Select[*tuple[Any, ...]], ColumnElement[int], ColumnElement[int]]:
    """A SELECT of the rows wanted, and the two columns that it is sorted by.

    It walks the index of what fewest runs have; the rest is looked up run by run.
    """
    created_at: ColumnElement[int] = RUNS.c.created_at
    number: ColumnElement[int] = RUNS.c.number
    for place, (name, value) in enumerate(_narrowest_first(connection, filter)):
        if isinstance(name, str):
            # A database may choose another index by its statistics, or for the lack of them;
            # `IS TRUE` leaves it the first one only.
            has_it: ColumnElement[bool] = RUNS.c[name] == value
            statement = statement.where(has_it if place == 0 else has_it.is_(true()))
        elif place == 0:
            statement = statement.join(MARKS, MARKS.c.run == RUNS.c.number)
            statement = statement.where(_is_mark(*name, value))
            created_at, number = MARKS.c.created_at, MARKS.c.run
        else:
            # PostgreSQL would read all marks first for an EXISTS.
            other = MARKS.alias()
            has = select(other.c.run).where(other.c.run == RUNS.c.number)
            has = has.where(_is_mark(*name, value, table=other))
            statement = statement.where(has.scalar_subquery().is_not(None))
    if filter.since is not None:
        statement = statement.where(created_at >= microseconds(filter.since))
    if filter.until is not None:
        statement = statement.where(created_at < microseconds(filter.until))
    return statement, created_at, number


Wanted = tuple[str | tuple[str, str], str]
"""A column of runs, or a kind and a name of marks; and the value that it must have."""


def _narrowest_first(connection: Connection, filter: RunFilter) -> list[Wanted]:
    """What must hold, in the order of how few runs have it, so far as they are counted."""
    wanted = list(_wanted(filter))
    if len(wanted) < 2:
        return wanted
    counts = connection.execute(select(*(_first_few(*one) for one in wanted))).one()
    return [one for _, one in sorted(zip(counts, wanted, strict=True), key=lambda pair: pair[0])]


def _first_few(name: str | tuple[str, str], value: str) -> ScalarSelect[int]:
    """How many runs have this, counted up to a bound in its index alone."""
    found = (
        select(RUNS.c.number).where(RUNS.c[name] == value)
        if isinstance(name, str)
        else select(MARKS.c.run).where(_is_mark(*name, value))
    )
    return select(func.count()).select_from(found.limit(FEW).subquery()).scalar_subquery()


def _wanted(filter: RunFilter) -> Iterator[Wanted]:
    """What must hold, roughly in the order of how few runs have it."""
    # Nearly all runs are done; few are in any other state.
    if filter.state not in (None, "done"):
        yield "state", str(filter.state)
    if filter.batch is not None:
        yield "batch", filter.batch
    if filter.scenario is not None:
        yield "scenario", filter.scenario
    for name, value in filter.labels:
        yield ("label", name), value
    if filter.scenario_tag is not None:
        yield ("tag", clipped_mark(filter.scenario_tag)), ""
    for column in ("agent", "fault", "verdict", "lab"):
        wanted = getattr(filter, column)
        if wanted is not None:
            yield column, wanted
    if filter.state == "done":
        yield "state", "done"


def _is_mark(kind: str, name: str, value: str, *, table: FromClause = MARKS) -> ColumnElement[bool]:
    return and_(table.c.kind == kind, table.c.name == name, table.c.value == value)


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


def batch_counts(connection: Connection, ids: Sequence[str]) -> Sequence[Row[*tuple[Any, ...]]]:
    """How many runs of each batch are alike in state and verdict."""
    alike = (RUNS.c.batch, RUNS.c.state, RUNS.c.verdict)
    return connection.execute(
        select(*alike, func.count().label("runs")).where(RUNS.c.batch.in_(ids)).group_by(*alike)
    ).all()


def batch_values(
    connection: Connection, ids: Sequence[str], name: str
) -> Sequence[Row[*tuple[Any, ...]]]:
    """Which values of a column the runs of each batch have: rows of `batch` and `value`."""
    asked = select(RUNS.c.batch, RUNS.c[name].label("value")).where(RUNS.c.batch.in_(ids))
    return connection.execute(asked.distinct()).all()


def batch_starters(connection: Connection, ids: Sequence[str]) -> Sequence[Row[*tuple[Any, ...]]]:
    """The label `by` of the first run of each batch that has one: rows of `batch` and `value`."""
    first = (
        select(RUNS.c.number)
        .where(RUNS.c.batch == BATCHES.c.id)
        .order_by(RUNS.c.created_at, RUNS.c.number)
        .limit(1)
        .correlate(BATCHES)
        .scalar_subquery()
    )
    asked = select(BATCHES.c.id, MARKS.c.value).join_from(BATCHES, MARKS, MARKS.c.run == first)
    asked = asked.where(BATCHES.c.id.in_(ids), MARKS.c.kind == "label", MARKS.c.name == "by")
    return connection.execute(asked).all()
