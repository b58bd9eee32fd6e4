"""`/trends`: verdicts and compliance over time, errors apart, and the rules that flip."""

from __future__ import annotations

import json
from typing import Annotated, get_args

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from opsdrill.api.problems import Refused
from opsdrill.api.service import Served
from opsdrill.app.flaky import flaky
from opsdrill.app.trend import Point, Step, Trend, trend
from opsdrill.errors import UsageError
from opsdrill.store.store import RunFilter, Store
from opsdrill.web.entry import needs
from opsdrill.web.pages.runs import Filters
from opsdrill.web.render import page

STRIP = 120
"""Runs of the strip, the newest."""
STEPS: tuple[Step, ...] = get_args(Step)
MOST_POINTS = 1000

router = APIRouter(include_in_schema=False)
Word = Annotated[str, Query(max_length=300)]


@router.get("/trends", **needs("read"))
async def trends(
    request: Request,
    service: Served,
    *,
    scenario: Word = "",
    tag: Word = "",
    agent: Word = "",
    since: Word = "",
    by: Word = "day",
) -> Response:
    filters = Filters(
        scenario=scenario.strip(), tag=tag.strip(), agent=agent.strip(), since=since.strip()
    )
    step: Step = next((each for each in STEPS if each == by), "day")
    wrong: UsageError | Refused | None = None
    values: dict[str, object] = {"points": (), "rows": (), "flaky": (), "cut": False}
    try:
        values |= await service.call(_found, service.store, filters.wanted(), step)
    except (UsageError, Refused) as error:
        wrong = error
    values |= {"filters": filters, "step": step, "steps": STEPS, "wrong": wrong}
    return page(request, "trends.html", values, here="trends", status=422 if wrong else 200)


def _found(store: Store, wanted: RunFilter, step: Step) -> dict[str, object]:
    found: Trend = trend(store, wanted, step)
    points = found.points[-MOST_POINTS:]
    rows = [row for point in found.points for row in point.rows]
    rows.sort(key=lambda row: row.created_at)
    turning, more = flaky(store, rows)
    return {
        "points": points,
        "rows": rows[-STRIP:],
        "total": len(rows),
        "errors": sum(row.verdict == "error" for row in rows),
        "cut": found.cut or len(found.points) > MOST_POINTS,
        "flaky": turning,
        "flaky_cut": more,
        "data": json.dumps([_series(points, name) for name in _NAMES]),
    }


_NAMES = ("since", "pass_rate", "compliance", "error_rate")


def _series(points: tuple[Point, ...], name: str) -> list[float | None]:
    if name == "since":
        return [point.since.timestamp() for point in points]
    shares = [getattr(point, name) for point in points]
    return [None if share is None else round(100 * share, 2) for share in shares]
