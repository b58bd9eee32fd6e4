"""Runs, one by one: their rows, their labels and tags, their batches."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, case, delete, select, update

from opsdrill.model.result import RunState
from opsdrill.model.run import RunSpec
from opsdrill.store import rows
from opsdrill.store.database import insert, insert_or_ignore
from opsdrill.store.tables import (
    BATCHES,
    DOCUMENTS,
    EVENTS,
    FILE_USES,
    GRADES,
    MARKS,
    PHASES,
    RUNS,
)


def insert_runs(
    connection: Connection, specs: Sequence[RunSpec], values: Mapping[str, object]
) -> dict[str, int]:
    """The numbers of new runs by their ids; without those whose ids are there already.

    Args:
        connection: the connection.
        specs: the runs, at least one, each id once.
        values: columns that are other than those of a run that was only planned.
    """
    columns = [rows.planned(spec) | dict(values) for spec in specs]
    statement = insert_or_ignore(connection, RUNS, ["id"]).returning(RUNS.c.id, RUNS.c.number)
    numbers = {row.id: row.number for row in connection.execute(statement, columns)}
    new = [spec for spec in specs if spec.id in numbers]
    marks = [{"run": numbers[spec.id]} | mark for spec in new for mark in rows.marks(spec)]
    if marks:
        connection.execute(MARKS.insert(), marks)
    batches: dict[str, int] = {}
    for spec in new:
        if spec.batch is not None:
            created = rows.created_at(spec)
            batches[spec.batch] = min(created, batches.get(spec.batch, created))
    for batch, created in sorted(batches.items()):
        _put_batch(connection, batch, created)
    return numbers


def _put_batch(connection: Connection, id: str, created_at: int) -> None:
    # On PostgreSQL this waits for whoever removes the batch with its last run.
    statement = insert(connection, BATCHES).values(id=id, created_at=created_at)
    earlier = statement.excluded.created_at
    first = case((earlier < BATCHES.c.created_at, earlier), else_=BATCHES.c.created_at)
    connection.execute(
        statement.on_conflict_do_update(index_elements=["id"], set_={"created_at": first})
    )


def run_of(connection: Connection, id: str, *, change: bool = False) -> Row[*tuple[Any, ...]]:
    """The whole row of a run. Raises KeyError.

    With `change` nobody else changes it, or what hangs on it, until the transaction ends.
    """
    statement = select(RUNS).where(RUNS.c.id == id)
    if change:
        # SQLite knows no such lock and needs none: its transactions that write come one by one.
        statement = statement.with_for_update()
    row = connection.execute(statement).first()
    if row is None:
        raise KeyError(id)
    return row


def ids_in(connection: Connection, ids: Collection[str], state: RunState) -> set[str]:
    """Those of some runs that are in this state."""
    statement = select(RUNS.c.id).where(RUNS.c.id.in_(sorted(ids)), RUNS.c.state == state)
    return set(connection.execute(statement).scalars())


def runs_to_change(connection: Connection, ids: Sequence[str]) -> dict[str, Row[*tuple[Any, ...]]]:
    """Number and state of some runs by their ids, locked as `run_of`. Raises KeyError."""
    found = {
        row.id: row
        for row in connection.execute(
            select(RUNS.c.id, RUNS.c.number, RUNS.c.state)
            .where(RUNS.c.id.in_(ids))
            .order_by(RUNS.c.number)
            .with_for_update()
        )
    }
    for id in ids:
        if id not in found:
            raise KeyError(id)
    return found


def run_number(connection: Connection, id: str, *, keep: bool = False) -> tuple[int, int]:
    """A run's number and its latest attempt. Raises KeyError.

    With `keep` nobody deletes the run until the transaction ends.
    """
    statement = select(RUNS.c.number, RUNS.c.attempt).where(RUNS.c.id == id)
    if keep:
        statement = statement.with_for_update(read=True, key_share=True)
    row = connection.execute(statement).first()
    if row is None:
        raise KeyError(id)
    return row.number, row.attempt


def set_run(connection: Connection, run: int, values: dict[str, object]) -> None:
    connection.execute(update(RUNS).where(RUNS.c.number == run).values(**values))


def set_runs(connection: Connection, values: Mapping[int, dict[str, object]]) -> None:
    """Set the same columns of some runs, by their numbers."""
    if values:
        names = list(next(iter(values.values())))
        statement = update(RUNS).where(RUNS.c.number == bindparam("which"))
        connection.execute(
            statement.values({name: bindparam(f"new_{name}") for name in names}),
            [
                {"which": run} | {f"new_{name}": value for name, value in columns.items()}
                for run, columns in values.items()
            ],
        )


def owned(connection: Connection, state: RunState) -> Sequence[Row[*tuple[Any, ...]]]:
    """The runs in a state with the processes that they belong to, in the order planned."""
    return connection.execute(
        select(
            RUNS.c.id,
            RUNS.c.owner_machine,
            RUNS.c.owner_boot,
            RUNS.c.owner_pid,
            RUNS.c.owner_started,
        )
        .where(RUNS.c.state == state)
        .order_by(RUNS.c.number)
    ).all()


def ids_from(connection: Connection, prefix: str, limit: int) -> list[str]:
    """Ids that start with `prefix`, in their order."""
    return list(
        connection.execute(
            select(RUNS.c.id)
            .where(RUNS.c.id >= prefix, RUNS.c.id < prefix + "\U0010ffff")
            .order_by(RUNS.c.id)
            .limit(limit)
        ).scalars()
    )


def delete_run(connection: Connection, run: int, batch: str | None) -> None:
    """Remove a run, and its batch with the last run of it."""
    for table in (PHASES, DOCUMENTS, EVENTS, GRADES, FILE_USES, MARKS):
        connection.execute(delete(table).where(table.c.run == run))
    connection.execute(delete(RUNS).where(RUNS.c.number == run))
    if batch is None:
        return
    # First alone with the batch, then a look at its runs: none can join in between.
    connection.execute(select(BATCHES.c.number).where(BATCHES.c.id == batch).with_for_update())
    left = select(RUNS.c.number).where(RUNS.c.batch == BATCHES.c.id).exists()
    connection.execute(delete(BATCHES).where(BATCHES.c.id == batch, ~left))
