"""`/runs`: the table of runs, with its filters in the address.

Rows that go on are kept fresh; newer runs are told of, and do not move the rows that one reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from opsdrill.api.parameters import labels_of
from opsdrill.api.problems import Refused
from opsdrill.api.service import Served
from opsdrill.app import history
from opsdrill.errors import NotThere, UsageError
from opsdrill.store.store import Order, Page, RunFilter, RunRow, Store
from opsdrill.web.entry import needs
from opsdrill.web.render import page
from opsdrill.web.rows import told_rows

ROWS = 50
COUNTED = 10_000
FRESH_ROWS = 200
"""Rows that are asked for again at once."""
SORTS: tuple[tuple[Order, str], ...] = (
    ("-created_at", "newest first"),
    ("created_at", "oldest first"),
)

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Filters:
    """What the address says; empty texts say nothing."""

    scenario: str = ""
    agent: str = ""
    verdict: str = ""
    state: str = ""
    batch: str = ""
    tag: str = ""
    """Of the scenario."""
    label: str = ""
    """`NAME:VALUE`."""
    since: str = ""
    """A day."""
    sort: str = "-created_at"

    @property
    def any(self) -> bool:
        """Whether the table is narrowed."""
        return bool(self.query(sort=""))

    @property
    def order(self) -> Order:
        return "created_at" if self.sort == "created_at" else "-created_at"

    def query(self, **other: str) -> str:
        """The address's query with something else in it."""
        said = {name: getattr(self, name) for name in self.__slots__} | other
        plain = {name: value for name, value in said.items() if value}
        if plain.get("sort") == "-created_at":
            del plain["sort"]
        return urlencode(plain)

    def wanted(self) -> RunFilter:
        """What the store is asked. Raises UsageError for what cannot be."""
        found = history.wanted(
            scenario=self.scenario or None,
            agent=self.agent or None,
            state=self.state or None,
            verdict=self.verdict or None,
            batch=self.batch or None,
        )
        labels = labels_of([self.label]) if self.label else ()
        since = _day(self.since) if self.since else None
        return replace(
            found,
            scenario_tag=self.tag or None,
            labels=labels,
            since=since,
        )


def _day(text: str) -> datetime:
    try:
        return datetime.combine(date.fromisoformat(text), time(), UTC)
    except ValueError:
        raise UsageError(f"since: {text[:60]!r} is no day", hint="for example 2026-11-30") from None


Word = Annotated[str, Query(max_length=300)]


def said(
    *,
    scenario: Word = "",
    agent: Word = "",
    verdict: Word = "",
    state: Word = "",
    batch: Word = "",
    tag: Word = "",
    label: Word = "",
    since: Word = "",
    sort: Word = "-created_at",
) -> Filters:
    """The filters of an address."""
    words = (scenario, agent, verdict, state, batch, tag, label, since, sort)
    return Filters(*(word.strip() for word in words))


Said = Annotated[Filters, Depends(said)]


@dataclass(frozen=True, slots=True)
class News:
    """What is asked now and then of a table that somebody has before them."""

    filters: Filters
    going: Sequence[str]
    """Its runs that are not over."""
    newest: str | None
    """Its first run, empty where it has none; None: it does not begin with the newest."""
    count: int | None = 0
    """How many runs stand above that one now; None: it is not among the first any more."""

    @property
    def asked(self) -> str:
        """What the next look asks for; empty when there is nothing to wait for."""
        going = [("run", run) for run in self.going]
        if self.newest is None:
            return urlencode(going)
        return f"{urlencode([*going, ('newest', self.newest)])}&{self.filters.query()}"


@router.get("/runs", **needs("read"))
async def runs(request: Request, service: Served, filters: Said, cursor: Word = "") -> Response:
    wrong: UsageError | Refused | None = None
    found = Page()
    try:
        wanted = filters.wanted()
        found = await service.call(
            history.page_in,
            service.store,
            wanted,
            limit=ROWS,
            cursor=cursor or None,
            order=filters.order,
            count_to=COUNTED,
        )
    except (UsageError, Refused) as error:
        wrong = error
    first = not cursor and filters.order == "-created_at" and not wrong
    newest = found.rows[0].id if found.rows else ""
    values = {
        "filters": filters,
        "rows": told_rows(service.place, found.rows),
        "next": found.cursor,
        "cursor": cursor,
        "count": found.count or 0,
        "most": COUNTED,
        "verdicts": history.VERDICTS,
        "states": history.STATES,
        "sorts": SORTS,
        "news": News(filters, _going(found.rows), newest if first else None),
        "wrong": wrong,
    }
    status = 422 if wrong else 200
    return page(request, "runs.html", values, here="runs", status=status)


@router.get("/runs/rows", **needs("read"))
async def rows(
    request: Request,
    service: Served,
    filters: Said,
    run: Annotated[list[str] | None, Query(max_length=FRESH_ROWS)] = None,
    newest: Annotated[str | None, Query(max_length=300)] = None,
) -> Response:
    """Some rows of a table as they are now, what came since, and what is asked for next."""
    found = await service.call(_fresh, service.store, run or ())
    count = 0 if newest is None else await service.call(_newer, service.store, filters, newest)
    news = News(filters, _going(found), newest, count)
    values = {"rows": told_rows(service.place, found), "news": news}
    return page(request, "parts/fresh_rows.html", values)


def _fresh(store: Store, runs: Sequence[str]) -> list[RunRow]:
    waiting = history.waiting_runs(store) if runs else {}
    found = []
    for run in runs:
        try:
            with history.there(run):
                row = store.get(run).row()
        except NotThere:
            continue  # deleted meanwhile; its row says what was last known
        found.append(history.waits_told(row, waiting))
    return found


def _newer(store: Store, filters: Filters, newest: str) -> int | None:
    """How many runs stand above the one that was the newest; None: it is not among the first."""
    found = store.page(filters.wanted(), limit=ROWS).rows
    if not newest:
        return len(found)
    return next((place for place, row in enumerate(found) if row.id == newest), None)


def _going(rows: Sequence[RunRow]) -> list[str]:
    return [row.id for row in rows if not row.over]
