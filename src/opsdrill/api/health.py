"""Whether the process lives, whether it can work, and what it counts: for those who watch it."""

from __future__ import annotations

from collections import Counter

from fastapi import APIRouter, Depends, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from opsdrill.api.entry import ROLE_KEY, admitted
from opsdrill.api.metrics import Metrics
from opsdrill.api.problems import answers
from opsdrill.api.service import Served
from opsdrill.wire.health import Health, Readiness

router = APIRouter(tags=["health"])


@router.head("/health", include_in_schema=False)
@router.get(
    "/health",
    operation_id="health",
    summary="Is it alive?",
    description="Answers as long as the process lives. Takes no role, and asks nothing else.",
)
async def health() -> Health:
    return Health()


@router.head("/ready", include_in_schema=False)
@router.get(
    "/ready",
    operation_id="ready",
    summary="Can it work?",
    description="Answers when the store does; 503 when it does not. Takes no role.",
    responses=answers(503),
)
async def ready(service: Served) -> Readiness:
    await service.call(service.access.tokens)
    return Readiness()


async def _may_measure(request: Request, service: Served) -> None:
    if not service.open_metrics:
        await admitted(request, service)


@router.get(
    "/metrics",
    operation_id="metrics",
    summary="Measurements",
    description=(
        "Requests and runs of this process in Prometheus's text format. Takes the role `read`, or "
        "none where the server was started with `--open-metrics`."
    ),
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    dependencies=[Depends(_may_measure)],
    openapi_extra={ROLE_KEY: "read"},
)
async def metrics(request: Request, service: Served) -> Response:
    found: Metrics = request.app.state.metrics
    runs = Counter[str](state for _, state in await service.engine.list())
    return Response(found.text(runs), headers={"content-type": CONTENT_TYPE_LATEST})
