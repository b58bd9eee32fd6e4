"""Phases, documents and events: what an attempt left behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, func, select, update

from opsdrill.store.database import insert_or_ignore, upsert
from opsdrill.store.documents import Body, Form
from opsdrill.store.tables import DOCUMENTS, EVENTS, PHASES


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


def events_size(connection: Connection, run: int, attempt: int) -> int:
    """Bytes of the events of an attempt as rows have them."""
    total = select(func.sum(func.length(EVENTS.c.body))).where(
        EVENTS.c.run == run, EVENTS.c.attempt == attempt
    )
    return int(connection.execute(total).scalar() or 0)
