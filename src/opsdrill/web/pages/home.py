"""`/`: the runs; the first time, with nothing kept, the way to the first verdict."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from opsdrill.api.service import Served
from opsdrill.store.store import RunFilter
from opsdrill.web.entry import needs
from opsdrill.web.render import page

router = APIRouter(include_in_schema=False)


@router.get("/", **needs("read"))
async def home(request: Request, service: Served) -> Response:
    kept = await service.call(service.store.count, RunFilter(), 1)
    if kept:
        return RedirectResponse("/runs", 303)
    return page(request, "home.html", {}, here="runs")
