"""A run as a listing shows it: as a row, and as a value for programs."""

from __future__ import annotations

from dataclasses import fields

from opsdrill.store.store import RunRow


def row_value(row: RunRow) -> dict[str, object]:
    """A row for programs."""
    values: dict[str, object] = {part.name: getattr(row, part.name) for part in fields(row)}
    for name in ("compliance", "remediation"):
        pair = getattr(row, name)
        values[name] = {"passed": pair[0], "total": pair[1]} if pair else None
    return values
