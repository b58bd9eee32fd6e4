"""`/settings`: tokens, the agents and labs that can be named, and what this is."""

from __future__ import annotations

import platform

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

import opsdrill
from opsdrill.api.entry import Who
from opsdrill.api.labs import shown as plain
from opsdrill.api.problems import Refused
from opsdrill.api.service import Served, Service
from opsdrill.app import agent_list, labs
from opsdrill.app.access import ROLES, Caller, Made
from opsdrill.errors import InvalidInput
from opsdrill.web.entry import needs
from opsdrill.web.forms import Form, sent
from opsdrill.web.render import page
from opsdrill.web.sure import confirmed, question

MEANS = {
    "read": "sees everything, changes nothing",
    "run": "also starts, cancels and retries runs, and brings recorded ones",
    "edit": "also writes scenarios, regrades and deletes",
    "admin": "also makes and revokes tokens",
}

router = APIRouter(include_in_schema=False)


@router.get("/settings", **needs("read"))
async def settings(request: Request, service: Served, who: Who) -> Response:
    return await _page(request, service, who)


@router.post("/settings/tokens", **needs("admin"))
async def create(request: Request, service: Served, who: Who) -> Response:
    """The new token's secret is in this answer, and in no other."""
    form = await sent(request)
    try:
        role = next((role for role in ROLES if role == form.one("role")), None)
        if role is None:
            raise Refused(422, f"role: must be one of {', '.join(ROLES)}")
        days = form.number("days")
        name = form.one("name")
        made = await service.call(service.access.create, name, role, days=days, by=who.name)
    except (InvalidInput, Refused) as error:
        return await _page(request, service, who, form=form, wrong=error)
    return await _page(request, service, who, made=made)


@router.post("/settings/tokens/{token}/revoke", **needs("admin"))
async def revoke(request: Request, token: str, service: Served) -> Response:
    if not await confirmed(request):
        found = await service.call(service.access.token, token)
        asked = f"Revoke the token {found.name}? Who uses it is shut out at once."
        return question(request, asked, "Revoke it", back="/settings")
    await service.call(service.access.revoke, token)
    return RedirectResponse("/settings#tokens", 303)


async def _page(
    request: Request,
    service: Service,
    who: Caller,
    *,
    form: Form | None = None,
    made: Made | None = None,
    wrong: InvalidInput | Refused | None = None,
) -> Response:
    tokens = await service.call(service.access.tokens) if who.may("admin") else []
    values = {
        "tokens": [(token, service.access.state(token)) for token in tokens],
        "roles": [(role, MEANS[role]) for role in ROLES],
        "form": form or Form((("role", "run"), ("days", "90"))),
        "made": made,
        "wrong": wrong,
        "version": opsdrill.__version__,
        "python": platform.python_version(),
        **await service.call(_configured, service),
    }
    return page(request, "settings.html", values, here="settings", status=422 if wrong else 200)


def _configured(service: Service) -> dict[str, object]:
    """The agents and labs by name; a broken file says so."""
    agents: list[agent_list.Row] = []
    agents_wrong = None
    try:
        agents = agent_list.by_name(service.place)
    except InvalidInput as error:
        agents_wrong = plain(service, error.message)
    found = labs.all_named(service.place)
    return {
        "agents": agents,
        "agents_wrong": agents_wrong,
        "labs": [(one, plain(service, one.problem) if one.problem else None) for one in found],
        "default_lab": labs.named_only(None, service.place).name,
        "has_file": service.place.settings.agent_config is not None,
    }
