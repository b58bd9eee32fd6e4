"""Every question and every change that `SqlStore` puts to the database, by name.

Each takes the connection of a transaction that is open. `run` is a run's number, `id` its id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Row,
    and_,
    bindparam,
    delete,
    func,
    or_,
    select,
    tuple_,
    update,
)

from opsdrill.store.database import insert_or_ignore, upsert
from opsdrill.store.documents import Body, Form
from opsdrill.store.store import RunFilter
from opsdrill.store.tables import (
    DOCUMENTS,
    EVENTS,
    FILE_USES,
    FILES,
    GRADES,
    PHASES,
    RUNS,
)

_LISTED = (
    RUNS.c.number, RUNS.c.id, RUNS.c.batch, RUNS.c.scenario, RUNS.c.title, RUNS.c.agent,
    RUNS.c.lab, RUNS.c.repeat, RUNS.c.state, RUNS.c.verdict, RUNS.c.fault, RUNS.c.reason,
    RUNS.c.compliance_passed, RUNS.c.compliance_total, RUNS.c.remediation_passed,
    RUNS.c.remediation_total, RUNS.c.after_agent, RUNS.c.created_at, RUNS.c.ended_at,
)  # fmt: skip


# runs


def insert_run(connection: Connection, values: dict[str, object]) -> int | None:
    """The new run's number; None when its id is there already."""
    statement = insert_or_ignore(connection, RUNS).values(**values)
    number: int | None = connection.execute(statement.returning(RUNS.c.number)).scalar()
    return number


def run_of(connection: Connection, id: str) -> Row[*tuple[Any, ...]]:
    """The whole row of a run. Raises KeyError."""
    row = connection.execute(select(RUNS).where(RUNS.c.id == id)).first()
    if row is None:
        raise KeyError(id)
    return row


def run_to_change(connection: Connection, id: str) -> Row[*tuple[Any, ...]]:
    """As `run_of`; until the transaction ends nobody else can change it. Raises KeyError."""
    # SQLite knows no such lock and needs none: its transactions that write come one by one.
    row = connection.execute(select(RUNS).where(RUNS.c.id == id).with_for_update()).first()
    if row is None:
        raise KeyError(id)
    return row


def runs_to_change(connection: Connection, ids: Sequence[str]) -> dict[str, Row[*tuple[Any, ...]]]:
    """As `run_to_change` for some runs, by their ids: number and state. Raises KeyError."""
    rows = connection.execute(
        select(RUNS.c.id, RUNS.c.number, RUNS.c.state)
        .where(RUNS.c.id.in_(ids))
        .order_by(RUNS.c.number)
        .with_for_update()
    )
    found = {row.id: row for row in rows}
    for id in ids:
        if id not in found:
            raise KeyError(id)
    return found


def run_number(connection: Connection, id: str) -> tuple[int, int]:
    """A run's number and its latest attempt. Raises KeyError."""
    row = connection.execute(select(RUNS.c.number, RUNS.c.attempt).where(RUNS.c.id == id)).first()
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


def running(connection: Connection) -> Sequence[Row[*tuple[Any, ...]]]:
    return connection.execute(
        select(
            RUNS.c.id,
            RUNS.c.owner_machine,
            RUNS.c.owner_boot,
            RUNS.c.owner_pid,
            RUNS.c.owner_started,
        )
        .where(RUNS.c.state == "running")
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


def listed(
    connection: Connection, filter: RunFilter, limit: int, after: tuple[int, int] | None
) -> Sequence[Row[*tuple[Any, ...]]]:
    """Rows of a listing, newest first, behind the row (created_at, number)."""
    wanted: list[ColumnElement[bool]] = []
    for name in _narrowest_first(filter):
        value = getattr(filter, name)
        if value is not None:
            # A database without statistics may walk the widest index; `|| ''` leaves it the
            # first one only, and the other columns are compared row by row.
            column = RUNS.c[name] if not wanted else RUNS.c[name].concat("")
            wanted.append(column == value)
    if after is not None:
        wanted.append(tuple_(RUNS.c.created_at, RUNS.c.number) < tuple_(*after))
    return connection.execute(
        select(*_LISTED)
        .where(*wanted)
        .order_by(RUNS.c.created_at.desc(), RUNS.c.number.desc())
        .limit(limit)
    ).all()


def _narrowest_first(filter: RunFilter) -> tuple[str, ...]:
    # Nearly all runs are done; few are in any other state.
    if filter.state in (None, "done"):
        return "batch", "scenario", "agent", "verdict", "state"
    return "state", "batch", "scenario", "agent", "verdict"


def delete_run(connection: Connection, run: int) -> None:
    for table in (PHASES, DOCUMENTS, EVENTS, GRADES, FILE_USES):
        connection.execute(delete(table).where(table.c.run == run))
    connection.execute(delete(RUNS).where(RUNS.c.number == run))


# phases


def put_phase(connection: Connection, run: int, attempt: int, values: dict[str, object]) -> None:
    """Keep a phase's present state in place of an earlier one."""
    rest = [name for name in values if name != "name"]
    statement = upsert(connection, PHASES, ("run", "attempt", "name"), rest)
    connection.execute(statement.values(run=run, attempt=attempt, **values))


def phases(connection: Connection, run: int, attempt: int) -> Sequence[Row[*tuple[Any, ...]]]:
    return connection.execute(
        select(PHASES).where(PHASES.c.run == run, PHASES.c.attempt == attempt)
    ).all()


def interrupt_phases(
    connection: Connection, run: int, attempt: int, ended_at: int, reason: str
) -> None:
    connection.execute(
        update(PHASES)
        .where(PHASES.c.run == run, PHASES.c.attempt == attempt, PHASES.c.status == "running")
        .values(status="interrupted", ended_at=ended_at, reason=reason)
    )


# documents


def put_document(
    connection: Connection,
    run: int,
    attempt: int,
    kind: str,
    body: Body,
    *,
    name: str = "",
    replace: bool = False,
) -> None:
    """Keep a document; one that is there already stays, unless `replace`."""
    values: dict[str, object] = {
        "run": run,
        "attempt": attempt,
        "kind": kind,
        "name": name,
        "form": body.form,
        "body": body.data,
    }
    statement = (
        upsert(connection, DOCUMENTS, ("run", "attempt", "kind", "name"), ("form", "body"))
        if replace
        else insert_or_ignore(connection, DOCUMENTS)
    )
    connection.execute(statement.values(**values))


def document(
    connection: Connection, run: int, attempt: int, kind: str, name: str = ""
) -> Body | None:
    row = connection.execute(
        select(DOCUMENTS.c.form, DOCUMENTS.c.body).where(
            DOCUMENTS.c.run == run,
            DOCUMENTS.c.attempt == attempt,
            DOCUMENTS.c.kind == kind,
            DOCUMENTS.c.name == name,
        )
    ).first()
    return None if row is None else body_of(row)


def documents(connection: Connection, run: int, attempt: int, kind: str) -> list[tuple[str, Body]]:
    """All documents of a kind by name, in the order in which they were first kept."""
    rows = connection.execute(
        select(DOCUMENTS.c.name, DOCUMENTS.c.form, DOCUMENTS.c.body)
        .where(DOCUMENTS.c.run == run, DOCUMENTS.c.attempt == attempt, DOCUMENTS.c.kind == kind)
        .order_by(DOCUMENTS.c.number)
    ).all()
    return [(row.name, body_of(row)) for row in rows]


def body_of(row: Row[*tuple[Any, ...]]) -> Body:
    form: Form = row.form
    return Body(form, bytes(row.body))


# events


def put_events(
    connection: Connection, run: int, attempt: int, events: Sequence[tuple[int, Body]]
) -> None:
    """Keep events; one whose number is there already stays as it is."""
    connection.execute(
        insert_or_ignore(connection, EVENTS),
        [
            {"run": run, "attempt": attempt, "seq": seq, "form": body.form, "body": body.data}
            for seq, body in events
        ],
    )


def events(
    connection: Connection, run: int, attempt: int, after: int, limit: int
) -> list[tuple[int, Body]]:
    rows = connection.execute(
        select(EVENTS.c.seq, EVENTS.c.form, EVENTS.c.body)
        .where(EVENTS.c.run == run, EVENTS.c.attempt == attempt, EVENTS.c.seq > after)
        .order_by(EVENTS.c.seq)
        .limit(limit)
    ).all()
    return [(row.seq, body_of(row)) for row in rows]


# grades


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
    return connection.execute(select(*columns).select_from(source).where(RUNS.c.id.in_(ids))).all()


# files


def put_file(connection: Connection, digest: str, size: int, put_at: int | None) -> None:
    """Know a file; with `put_at` it is kept from then on even while no run uses it yet."""
    values: dict[str, object] = {"digest": digest, "size": size, "put_at": put_at}
    statement = (
        insert_or_ignore(connection, FILES)
        if put_at is None
        else upsert(connection, FILES, ("digest",), ("put_at",))
    )
    connection.execute(statement.values(**values))


def use_files(connection: Connection, run: int, digests: Iterable[str]) -> None:
    rows = [{"run": run, "digest": digest} for digest in sorted(set(digests))]
    if rows:
        connection.execute(insert_or_ignore(connection, FILE_USES), rows)


def known_files(connection: Connection, digests: Iterable[str]) -> set[str]:
    wanted = sorted(set(digests))
    return set(
        connection.execute(select(FILES.c.digest).where(FILES.c.digest.in_(wanted))).scalars()
    )


def planned_files(connection: Connection, digests: Iterable[str]) -> None:
    """The run that these files were put for is there."""
    wanted = sorted(set(digests))
    connection.execute(update(FILES).where(FILES.c.digest.in_(wanted)).values(put_at=None))


def used_files(connection: Connection, run: int) -> list[str]:
    return list(
        connection.execute(select(FILE_USES.c.digest).where(FILE_USES.c.run == run)).scalars()
    )


def forget_unused(connection: Connection, digests: Sequence[str], put_before: int) -> list[str]:
    """Forget those of `digests`, and all put before that moment, that no run uses."""
    used = select(FILE_USES.c.digest).where(FILE_USES.c.digest == FILES.c.digest).exists()
    candidates = or_(
        FILES.c.put_at < put_before, and_(FILES.c.digest.in_(digests), FILES.c.put_at.is_(None))
    )
    return list(
        connection.execute(
            delete(FILES).where(candidates, ~used).returning(FILES.c.digest)
        ).scalars()
    )
