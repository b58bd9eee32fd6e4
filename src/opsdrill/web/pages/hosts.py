"""`/hosts`: labs and drivers, what trying them shows, and who holds lasting hosts."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response

from opsdrill.api.labs import shown as plain
from opsdrill.api.service import Served
from opsdrill.app import hosts as host_cases
from opsdrill.app import labs
from opsdrill.app.history import waiting_runs
from opsdrill.errors import NotThere, OpsDrillError
from opsdrill.web.entry import needs
from opsdrill.web.render import page

router = APIRouter(include_in_schema=False)

LabName = Annotated[str, Path(max_length=200)]


@router.get("/hosts", **needs("read"))
async def hosts(request: Request, service: Served) -> Response:
    found = await service.call(labs.all_named, service.place)
    rows = [(one, plain(service, one.problem) if one.problem else None) for one in found]
    values = {"labs": rows, **await service.call(_leases, service)}
    return page(request, "hosts.html", values, here="hosts")


@router.get("/hosts/leases", **needs("read"))
async def leases(request: Request, service: Served) -> Response:
    return page(request, "parts/leases.html", await service.call(_leases, service))


def _leases(service: Served) -> dict[str, object]:
    return {
        "leases": host_cases.leases_in(service.store),
        "waiting": waiting_runs(service.store),
    }


@router.get("/hosts/{lab}/check", **needs("run"))
async def check(request: Request, lab: LabName, service: Served) -> Response:
    """What trying a lab shows, as a part of a page."""
    if lab not in await service.call(labs.names, service.place):
        raise NotThere("lab", lab)
    values: dict[str, object] = {"name": lab, "report": None, "wrong": None}
    try:
        values["report"] = await service.engine.check_lab(lab)
    except OpsDrillError as error:
        values["wrong"] = plain(service, error.message)
    values["plain"] = lambda text: plain(service, text)
    return page(request, "parts/lab_check.html", values)
