"""Runs as listings show them: row by row through all pages, and as values for programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from opsdrill.store.store import Order, RunFilter, RunRow, Store

_NAMES = tuple(part.name for part in fields(RunRow))


def all_rows(store: Store, narrowed: RunFilter, order: Order = "-created_at") -> Iterator[RunRow]:
    """Every run that a filter lets through; pages are read while one walks through them."""
    cursor: str | None = None
    while True:
        page = store.page(narrowed, limit=1000, cursor=cursor, order=order)
        yield from page.rows
        cursor = page.cursor
        if cursor is None:
            return


def row_value(row: RunRow) -> dict[str, object]:
    """A row for programs."""
    values: dict[str, object] = {name: getattr(row, name) for name in _NAMES}
    for name in ("compliance", "remediation"):
        pair = getattr(row, name)
        values[name] = {"passed": pair[0], "total": pair[1]} if pair else None
    return values
