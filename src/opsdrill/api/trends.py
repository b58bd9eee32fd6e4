"""Trends: verdicts and compliance over time."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from opsdrill.api.answers import told
from opsdrill.api.entry import needs
from opsdrill.api.parameters import Narrowed
from opsdrill.api.problems import answers
from opsdrill.api.service import Served
from opsdrill.app.trend import Point, Step, trend
from opsdrill.wire.comparisons import TrendPoint, TrendTold

router = APIRouter(tags=["trends"])


@router.get(
    "/trends",
    response_model=TrendTold,
    operation_id="read_trend",
    summary="Read a trend",
    description="What became of runs over time: of a scenario, a tag, an agent, or whatever the "
    "filters let through. Errors have a share of their own and are in no other rate.",
    responses=answers(422),
    **needs("read"),
)
async def read_trend(
    service: Served,
    narrowed: Narrowed,
    by: Annotated[Step, Query(description="The span of a point, in UTC.")] = "day",
) -> Response:
    found = await service.call(trend, service.store, narrowed, by)
    body = TrendTold(
        scenario=narrowed.scenario,
        tag=narrowed.scenario_tag,
        agent=narrowed.agent,
        points=[_point(point) for point in found.points],
        cut=found.cut,
    )
    return told(body)


def _point(point: Point) -> TrendPoint:
    return TrendPoint(
        since=point.since,
        until=point.until,
        runs=len(point.rows),
        passed=point.count("passed"),
        failed=point.count("failed"),
        error=point.count("error"),
        pass_rate=point.pass_rate,
        error_rate=point.error_rate,
        compliance=point.compliance,
        remediation=point.remediation,
    )
