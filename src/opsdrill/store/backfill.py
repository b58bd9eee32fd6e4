"""Batches, labels and tags of the runs that were kept before the store had tables for them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection, func, select

from opsdrill.errors import StoreError
from opsdrill.store.bodies import Bodies
from opsdrill.store.course import MARK_LIMIT, clipped_mark
from opsdrill.store.documents import Body
from opsdrill.store.files import Files
from opsdrill.store.queries.evidence import body_of
from opsdrill.store.tables import BATCHES, DOCUMENTS, MARKS, RUNS

AT_ONCE = 1000


def fill(connection: Connection, files: Path | None) -> None:
    """Put the rows of all runs that are kept.

    A run whose spec cannot be read back is left without labels and tags.

    Args:
        connection: a transaction that writes.
        files: the folder of files.
    """
    first = func.min(RUNS.c.created_at)
    batches = (
        select(RUNS.c.batch, first)
        .where(RUNS.c.batch.is_not(None))
        .group_by(RUNS.c.batch)
        .order_by(first, func.min(RUNS.c.number))
    )
    connection.execute(BATCHES.insert().from_select(["id", "created_at"], batches))
    bodies = None if files is None else Bodies(Files(files))
    after = 0
    while True:
        rows = connection.execute(
            select(RUNS.c.number, RUNS.c.created_at, DOCUMENTS.c.form, DOCUMENTS.c.body)
            .join(DOCUMENTS, (DOCUMENTS.c.run == RUNS.c.number) & (DOCUMENTS.c.attempt == 0))
            .where(DOCUMENTS.c.kind == "spec", RUNS.c.number > after)
            .order_by(RUNS.c.number)
            .limit(AT_ONCE)
        ).all()
        marks = [
            {"run": row.number, "created_at": row.created_at} | mark
            for row in rows
            for mark in _marks(_spec(body_of(row), bodies))
        ]
        if marks:
            connection.execute(MARKS.insert(), marks)
        if len(rows) < AT_ONCE:
            return
        after = rows[-1].number


def _spec(body: Body, bodies: Bodies | None) -> object:
    """A run's spec as JSON has it, of whatever version; None where it cannot be read."""
    if bodies is None:
        return None
    try:
        return json.loads(bodies.content(body, "the spec"))
    except (StoreError, ValueError, RecursionError):
        return None


def _marks(spec: object) -> Iterator[dict[str, object]]:
    match spec:
        case {"labels": dict(labels)}:
            for name, value in labels.items():
                if max(len(name), len(str(value))) <= MARK_LIMIT:
                    yield {"kind": "label", "name": name, "value": str(value)}
    match spec:
        case {"scenario": {"tags": list(tags)}}:
            for tag in sorted({clipped_mark(str(tag)) for tag in tags}):
                yield {"kind": "tag", "name": tag, "value": ""}
