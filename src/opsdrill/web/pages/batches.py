"""`/batches`: runs that were started together, their progress, and what can be done with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from opsdrill.api.parameters import BatchId
from opsdrill.api.service import Served, Service
from opsdrill.app import history
from opsdrill.model.result import RunState, Verdict
from opsdrill.store.store import BatchRow, RunFilter
from opsdrill.web.entry import needs
from opsdrill.web.render import page
from opsdrill.web.rows import told_rows
from opsdrill.web.sure import confirmed, question

ROWS = 50
RUNS = 200
GOING: tuple[RunState, ...] = ("running", "planned")
OVER: tuple[Verdict, ...] = ("passed", "failed", "error")
STOPPED: tuple[RunState, ...] = ("cancelled", "interrupted")

Counts = Sequence[tuple[str, int]]

router = APIRouter(include_in_schema=False)


def counts(row: BatchRow) -> Counts:
    """How many of a batch's runs are what, each run once: its verdict, else its state."""
    found: dict[str, int] = {name: row.verdicts.get(name, 0) for name in OVER}
    found |= {state: row.states.get(state, 0) for state in (*STOPPED, *GOING)}
    return [(name, number) for name, number in found.items() if number]


def going(row: BatchRow) -> int:
    """How many of its runs are not over."""
    return sum(row.states.get(state, 0) for state in GOING)


@router.get("/batches", **needs("read"))
async def batches(
    request: Request, service: Served, cursor: Annotated[str, Query(max_length=500)] = ""
) -> Response:
    found = await service.call(service.store.batches, limit=ROWS, cursor=cursor or None)
    rows = [(row, counts(row), going(row)) for row in found.rows]
    values = {"rows": rows, "next": found.cursor, "cursor": cursor}
    return page(request, "batches.html", values, here="batches")


@router.get("/batches/{batch}", **needs("read"))
async def batch(request: Request, batch: BatchId, service: Served) -> Response:
    values = await _shown(service, batch)
    template = "parts/batch.html" if "hx-request" in request.headers else "batch.html"
    return page(request, template, values, here="batches")


async def _shown(service: Service, batch: str) -> dict[str, object]:
    row = await service.call(service.store.batch, batch)
    found = await service.call(
        history.page_in,
        service.store,
        RunFilter(batch=batch),
        limit=RUNS,
        cursor=None,
        order="created_at",
    )
    return {
        "batch": row,
        "counts": counts(row),
        "going": going(row),
        "errored": row.verdicts.get("error", 0) + row.states.get("interrupted", 0),
        "rows": told_rows(service.place, found.rows),
        "more": found.cursor is not None,
    }


@router.post("/batches/{batch}/cancel", **needs("run"))
async def cancel(request: Request, batch: BatchId, service: Served) -> Response:
    if not await confirmed(request):
        row = await service.call(service.store.batch, batch)
        asked = f"Stop the {going(row)} runs of this batch that are not over?"
        return question(request, asked, "Stop them", back=f"/batches/{batch}")
    await service.engine.cancel_batch(batch)
    return RedirectResponse(f"/batches/{batch}", 303)


@router.post("/batches/{batch}/retry", **needs("run"))
async def retry(batch: BatchId, service: Served) -> Response:
    await service.engine.retry_batch(batch)
    return RedirectResponse(f"/batches/{batch}", 303)
