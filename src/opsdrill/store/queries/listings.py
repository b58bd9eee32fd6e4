"""Listings of runs and of batches: each walks one index in the order of its page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    func,
    literal_column,
    select,
    true,
    tuple_,
    union_all,
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


Wanted = tuple[str | tuple[str, str], str]
"""A column of runs, or a kind and a name of marks; and the value that it must have."""


class Listing:
    """The runs that a filter lets through.

    The index of what fewest runs have is walked, in the order of a page; whether such a run has
    the rest is looked up run by run.
    """

    def __init__(self, connection: Connection, filter: RunFilter) -> None:
        self._connection = connection
        self._filter = filter
        self._wanted = _narrowest_first(connection, filter)
        of_marks = bool(self._wanted) and not isinstance(self._wanted[0][0], str)
        # Where the index that is walked has a run's place.
        self._created_at = MARKS.c.created_at if of_marks else RUNS.c.created_at
        self._number = MARKS.c.run if of_marks else RUNS.c.number

    def rows(
        self, limit: int, after: Place | None, order: Order = "-created_at"
    ) -> Sequence[Row[*tuple[Any, ...]]]:
        """Rows behind the run that stands at `after`."""
        statement = self._ordered(self._narrowed(select(*LISTED)), order)
        if after is not None:
            here, there = tuple_(self._created_at, self._number), tuple_(*after)
            statement = statement.where(here < there if order == "-created_at" else here > there)
        return self._connection.execute(statement.limit(limit)).all()

    def count(self, at_most: int) -> int:
        """How many runs there are, up to a bound."""
        # Without an order a database may walk an index from its beginning to its end.
        found = self._ordered(self._narrowed(select(self._number)), "-created_at").limit(at_most)
        counted = select(func.count()).select_from(found.subquery())
        return self._connection.execute(counted).scalar_one()

    def _narrowed(self, statement: Select[*tuple[Any, ...]]) -> Select[*tuple[Any, ...]]:
        for place, (name, value) in enumerate(self._wanted):
            if isinstance(name, str):
                # A database may choose another index by its statistics, or for the lack of them;
                # `IS TRUE` leaves it the first one only.
                has_it: ColumnElement[bool] = RUNS.c[name] == value
                statement = statement.where(has_it if place == 0 else has_it.is_(true()))
            elif place == 0:
                statement = statement.where(_is_mark(*name, value))
            else:
                statement = statement.where(_has_mark(self._number, *name, value))
        froms = statement.get_final_froms()
        if RUNS in froms and MARKS in froms:
            statement = statement.where(MARKS.c.run == RUNS.c.number)
        return _within(statement, self._created_at, self._filter)

    def _ordered(
        self, statement: Select[*tuple[Any, ...]], order: Order
    ) -> Select[*tuple[Any, ...]]:
        place = (self._created_at, self._number)
        if order == "-created_at":
            return statement.order_by(*(column.desc() for column in place))
        return statement.order_by(*(column.asc() for column in place))


def _within(
    statement: Select[*tuple[Any, ...]], created_at: ColumnElement[int], filter: RunFilter
) -> Select[*tuple[Any, ...]]:
    """Only what was created in the filter's time."""
    if filter.since is not None:
        statement = statement.where(created_at >= microseconds(filter.since))
    if filter.until is not None:
        statement = statement.where(created_at < microseconds(filter.until))
    return statement


def _narrowest_first(connection: Connection, filter: RunFilter) -> list[Wanted]:
    """What must hold, in the order of how few runs have it, so far as they are counted."""
    wanted = list(_wanted(filter))
    if len(wanted) < 2:
        return wanted
    asked = [_newest_few(place, *one, filter) for place, one in enumerate(wanted)]
    counts = {row.place: row for row in connection.execute(union_all(*asked))}
    # Of two with as many runs, those that reach further back stand further apart.
    places = sorted(counts, key=lambda place: (counts[place].runs, counts[place].since or 0, place))
    return [wanted[place] for place in places]


def _newest_few(
    place: int, name: str | tuple[str, str], value: str, filter: RunFilter
) -> Select[*tuple[Any, ...]]:
    """How many runs have this, the newest counted up to a bound in its index alone; since when."""
    if isinstance(name, str):
        created_at, number = RUNS.c.created_at, RUNS.c.number
        found = select(created_at).where(RUNS.c[name] == value)
    else:
        created_at, number = MARKS.c.created_at, MARKS.c.run
        found = select(created_at).where(_is_mark(*name, value))
    found = _within(found, created_at, filter).order_by(created_at.desc(), number.desc())
    few = found.limit(FEW).subquery()
    counted: Select[*tuple[Any, ...]] = select(
        literal_column(str(place)).label("place"),
        func.count().label("runs"),
        func.min(few.c.created_at).label("since"),
    )
    return counted.select_from(few)


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


def _is_mark(kind: str, name: str, value: str) -> ColumnElement[bool]:
    return and_(MARKS.c.kind == kind, MARKS.c.name == name, MARKS.c.value == value)


def _has_mark(number: ColumnElement[int], kind: str, name: str, value: str) -> ColumnElement[bool]:
    """Whether a run that was found by something else has a mark too, looked up by the run."""
    other = MARKS.alias()
    has = select(other.c.run).where(other.c.run == number, other.c.name == name)
    # For lack of statistics PostgreSQL may walk all that have the mark, for each run.
    has = has.where((other.c.kind == kind).is_(true()), (other.c.value == value).is_(true()))
    # It would read all marks first for an EXISTS.
    return has.scalar_subquery().is_not(None)


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
