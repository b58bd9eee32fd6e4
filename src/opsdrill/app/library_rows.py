"""Scenarios as a listing shows them, wherever they are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from opsdrill.errors import Problem
from opsdrill.scenarios.catalogue import Entry, Origin
from opsdrill.store.shelf import ScenarioRow


@dataclass(frozen=True, slots=True)
class Row:
    """A scenario as a listing shows it."""

    key: str
    title: str
    tags: tuple[str, ...]
    hosts: tuple[str, ...]
    rules: int
    origin: Origin
    pack: str | None
    number: int
    version: str | None
    """None: it is broken."""
    changed_at: datetime | None
    by: str | None
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class RowPage:
    """Some scenarios by key, and the cursor of the next page (None at the end)."""

    rows: tuple[Row, ...]
    cursor: str | None


def row_of_shelf(row: ScenarioRow) -> Row:
    """Of one in the store."""
    return Row(
        key=row.key,
        title=row.title,
        tags=row.tags,
        hosts=row.hosts,
        rules=row.rules,
        origin="kept",
        pack=None,
        number=row.number,
        version=row.version,
        changed_at=row.changed_at,
        by=row.by,
    )


def row_of_file(entry: Entry) -> Row:
    """Of one in a file, also where it is broken."""
    whole = entry.loaded
    return Row(
        key=entry.key or "",
        title=entry.title or "",
        tags=entry.tags,
        hosts=whole.scenario.host_names if whole else (),
        rules=len(whole.scenario.validation) if whole else 0,
        origin=entry.origin,
        pack=entry.pack,
        number=0,
        version=whole.version if whole and not entry.problems else None,
        changed_at=None,
        by=None,
        problems=entry.problems,
    )


def words_of(row: Row) -> str:
    """What a search looks through."""
    return "\n".join((row.key, row.title, *row.tags)).casefold()
