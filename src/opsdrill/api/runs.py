"""Runs: start, list, read, cancel, retry, delete."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query, Response
from pydantic import TypeAdapter

from opsdrill.api.answers import told
from opsdrill.api.bodies import ToTheLetter
from opsdrill.api.entry import Who, needs
from opsdrill.api.parameters import Cursor, Limit, Narrowed, RunId
from opsdrill.api.problems import Refused, answers
from opsdrill.api.run_shapes import planned_told, run_detail, run_told
from opsdrill.api.service import Served, Service
from opsdrill.app import history
from opsdrill.app.live_order import LiveOrder
from opsdrill.app.own_folders import own_folders
from opsdrill.store.store import Order, StoredRun
from opsdrill.wire.runs import RunDetail, RunList, RunRetried, RunsAsked, RunsStarted, RunTold

router = APIRouter(tags=["runs"], route_class=ToTheLetter)

Sort = Annotated[
    Literal["-created_at", "created_at"], Query(description="The newest first, or the oldest.")
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=200,
        description="Chosen by the caller: the same request sent again with it within 24 hours "
        "starts nothing anew and is answered as the first time.",
    ),
]
COUNTED = 10_000
"""How far the runs of a listing are counted."""
_PLAIN = re.compile(r"[\x21-\x7e]+")
_ASKED: TypeAdapter[RunsAsked] = TypeAdapter(RunsAsked)


@router.post(
    "/runs",
    status_code=202,
    response_model=RunsStarted,
    operation_id="start_runs",
    summary="Start runs",
    description=(
        "Every scenario by every agent, as often as asked, as one batch. Everything is named by "
        "what the server knows: scenarios by key, tag or pack, agents and labs by the names that "
        "an admin configured. Follow them at `/runs/{run}/events` or `/events?batch=...`."
    ),
    responses=answers(400, 409, 422, 503),
    **needs("run"),
)
async def start_runs(
    asked: RunsAsked, service: Served, who: Who, idempotency_key: IdempotencyKey = None
) -> Response:
    if idempotency_key is None:
        return _started(await _start(service, asked, who.name))
    if not _PLAIN.fullmatch(idempotency_key):
        raise Refused(400, "Idempotency-Key must be printable characters without spaces")
    book, key = service.store.requests(), idempotency_key
    digest = hashlib.sha256(_ASKED.dump_json(asked)).hexdigest()
    claimed = await service.call(book.claim, who.token, key, digest, datetime.now(UTC))
    if claimed.state == "under way":
        raise Refused(409, "this very request is being worked on", headers={"Retry-After": "1"})
    if claimed.answer is not None:
        return _started(claimed.answer)
    try:
        body = await _start(service, asked, who.name)
    except BaseException:
        await service.call(book.release, who.token, key)
        raise
    await service.call(book.answer, who.token, key, body)
    return _started(body)


async def _start(service: Service, asked: RunsAsked, by: str) -> bytes:
    started = await service.engine.submit(LiveOrder(**asked.model_dump(), by=by))
    runs = [planned_told(spec) for spec in started.runs]
    return bytes(told(RunsStarted(batch=started.batch, runs=runs)).body)


def _started(body: bytes) -> Response:
    return Response(body, 202, media_type="application/json")


@router.get(
    "/runs",
    response_model=RunList,
    operation_id="list_runs",
    summary="List runs",
    description="Runs that all filters let through. A page stays right while runs arrive.",
    responses=answers(400, 422),
    **needs("read"),
)
async def list_runs(
    service: Served,
    narrowed: Narrowed,
    sort: Sort = "-created_at",
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    order: Order = sort
    folders = own_folders(service.place)
    found = await service.call(
        history.page_in,
        service.store,
        narrowed,
        limit=limit,
        cursor=cursor,
        order=order,
        count_to=COUNTED,
    )
    rows = [run_told(row, folders) for row in found.rows]
    return told(RunList(runs=rows, cursor=found.cursor, count=found.count or 0))


@router.get(
    "/runs/{run}",
    response_model=RunDetail,
    operation_id="read_run",
    summary="Read a run",
    description="A run as it stands: state, verdict, phases, and where the rest of it is.",
    responses=answers(404),
    **needs("read"),
)
async def read_run(run: RunId, service: Served) -> Response:
    kept = await service.call(_kept, service, run)
    going = kept.state == "running"
    waits_for = await service.engine.followers.waits_for(run) if going else None
    folders = own_folders(service.place)
    return told(run_detail(kept, waits_for, f"/api/v1/runs/{run}", folders))


def _kept(service: Service, run: str) -> StoredRun:
    with history.there(run):
        return service.store.get(run)


@router.delete(
    "/runs/{run}",
    status_code=204,
    operation_id="delete_run",
    summary="Delete a run",
    description="Removes a run with everything that is kept of it. One that works must be "
    "cancelled first.",
    responses=answers(404, 409),
    **needs("edit"),
)
async def delete_run(run: RunId, service: Served) -> Response:
    await service.call(history.delete_in, service.place, service.store, run)
    return Response(status_code=204)


@router.post(
    "/runs/{run}/cancel",
    response_model=RunTold,
    operation_id="cancel_run",
    summary="Cancel a run",
    description="Stops a run and answers when its hosts are given back. One that is over already "
    "stays as it is, and is told.",
    responses=answers(404, 409),
    **needs("run"),
)
async def cancel_run(run: RunId, service: Served) -> Response:
    await service.engine.cancel(run)
    return told(await service.call(_row, service, run))


def _row(service: Service, run: str) -> RunTold:
    return run_told(_kept(service, run).row(), own_folders(service.place))


@router.post(
    "/runs/{run}/retry",
    status_code=202,
    response_model=RunRetried,
    operation_id="retry_run",
    summary="Retry a run",
    description="Plans a run anew that ended in `error` or was interrupted: the same version of "
    "the scenario, the same agent, the same lab. A run with a verdict is not retried.",
    responses=answers(404, 409, 503),
    **needs("run"),
)
async def retry_run(run: RunId, service: Served) -> RunRetried:
    return RunRetried(run=await service.engine.retry(run), retry_of=run)
