"""`/log-in` and `/log-out`: a browser's session begins with a token, and ends."""

from __future__ import annotations

from datetime import timedelta

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from opsdrill.api import entry as api_entry
from opsdrill.api.problems import Refused
from opsdrill.api.service import Served
from opsdrill.api.tokens import begun, set_cookie
from opsdrill.app.access import SESSION
from opsdrill.web.entry import inside, needs
from opsdrill.web.forms import sent
from opsdrill.web.render import page

MOST_TOKEN = 200

router = APIRouter(include_in_schema=False)


@router.get("/log-in")
async def ask(request: Request, next: str = "/") -> Response:
    return _asked(request, inside(next))


@router.post("/log-in")
async def log_in(request: Request, service: Served) -> Response:
    form = await sent(request)
    wanted, token = inside(form.one("next")), form.one("token")
    if not token:
        return _asked(request, wanted, wrong="Paste a token first.", status=422)
    try:
        found = await begun(request, service, token[:MOST_TOKEN])
    except Refused as refused:
        return _asked(
            request,
            wanted,
            wrong=f"{refused.detail[:1].upper()}{refused.detail[1:]}.",
            status=refused.status_code,
            headers=dict(refused.headers or {}),
        )
    response = RedirectResponse(wanted, 303)
    set_cookie(request, service, response, found.secret, SESSION)
    return response


@router.post("/log-out", **needs("read"))
async def log_out(request: Request, service: Served) -> Response:
    response = RedirectResponse("/log-in", 303)
    held = request.cookies.get(api_entry.cookie_name(request, service))
    if held is not None:
        await service.call(service.access.log_out, held)
        set_cookie(request, service, response, "", timedelta(0))
    return response


def _asked(
    request: Request,
    wanted: str,
    *,
    wrong: str | None = None,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Response:
    values = {"next": wanted, "wrong": wrong}
    return page(request, "log_in.html", values, status=status, headers=headers)
