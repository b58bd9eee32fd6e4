"""`/start`: scenarios, agents, a lab and how often; then the batch's page."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import ValidationError

from opsdrill.api import runs as api_runs
from opsdrill.api.entry import Who
from opsdrill.api.known import Known
from opsdrill.api.labs import shown as plain
from opsdrill.api.problems import Refused
from opsdrill.api.service import Served, Service
from opsdrill.app import agent_list, labs
from opsdrill.app.library import Library
from opsdrill.errors import InvalidInput, OpsDrillError, Problem
from opsdrill.model.problem import from_validation
from opsdrill.web.entry import needs
from opsdrill.web.forms import Form, sent
from opsdrill.web.render import page
from opsdrill.wire.runs import RunsAsked, RunsStarted

LISTED = 500
"""Scenarios to choose from; others are named in words."""

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the form holds, as it was written."""

    chosen: tuple[str, ...] = ()
    """Scenarios that were ticked."""
    more: str = ""
    """Keys, tags and packs in words, with blanks between them."""
    agents: tuple[str, ...] = ()
    lab: str = ""
    repeat: str = "1"
    parallel: str = ""
    labels: str = ""
    """`NAME:VALUE`, one a line."""
    key: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    """A form sent twice starts its runs once."""


def _of(form: Form) -> Wanted:
    return Wanted(
        tuple(form.all("scenario")),
        form.one("more"),
        tuple(form.all("agent")),
        form.one("lab"),
        form.one("repeat") or "1",
        form.one("parallel"),
        form.one("labels"),
        form.one("key") or secrets.token_urlsafe(16),
    )


def asked(form: Form) -> RunsAsked:
    """The order that a form makes.

    Raises:
        InvalidInput: something in it cannot be.
        Refused: a number that is none.
    """
    words = [*form.all("scenario"), *form.one("more").replace(",", " ").split()]
    wrong = [
        *([] if words else [Problem("scenarios", "choose at least one")]),
        *([] if form.all("agent") else [Problem("agents", "choose at least one")]),
    ]
    labels, unread = _labels(form.one("labels"))
    if wrong or unread:
        raise InvalidInput("the runs cannot be started", [*wrong, *unread])
    data = {
        "scenarios": list(dict.fromkeys(words)),
        "agents": list(dict.fromkeys(form.all("agent"))),
        "lab": form.one("lab") or None,
        "repeat": form.number("repeat") or 1,
        "parallel": form.number("parallel"),
        "labels": labels,
    }
    try:
        return RunsAsked.model_validate(data)
    except ValidationError as error:
        problems = [problem for _, problem in from_validation(error)]
        raise InvalidInput("the runs cannot be started", problems) from None


def _labels(text: str) -> tuple[dict[str, str], list[Problem]]:
    found: dict[str, str] = {}
    wrong: list[Problem] = []
    for line in filter(None, map(str.strip, text.split("\n"))):
        name, colon, value = line.partition(":")
        if colon:
            found[name.strip()] = value.strip()
        else:
            wrong.append(Problem("labels", f"{line[:60]!r} is not NAME:VALUE"))
    return found, wrong


@router.get("/start", **needs("run"))
async def ask(request: Request, service: Served, library: Known) -> Response:
    query = Form(tuple(request.query_params.multi_items()))
    return await _form(request, service, library, _of(query))


@router.post("/start", **needs("run"))
async def start(request: Request, service: Served, library: Known, who: Who) -> Response:
    form = await sent(request)
    wanted = _of(form)
    try:
        answer = await api_runs.start_runs(asked(form), service, who, wanted.key)
    except (OpsDrillError, Refused) as error:
        return await _form(request, service, library, wanted, error)
    started = RunsStarted.model_validate_json(bytes(answer.body))
    return RedirectResponse(f"/batches/{started.batch}", 303)


async def _form(
    request: Request,
    service: Service,
    library: Library,
    wanted: Wanted,
    wrong: OpsDrillError | Refused | None = None,
) -> Response:
    choices = await service.call(_choices, service, library)
    known = {*choices["keys"], *choices["groups"]}
    stray = [word for word in wanted.chosen if word not in known]
    if stray:
        wanted = replace(
            wanted,
            chosen=tuple(word for word in wanted.chosen if word in known),
            more=" ".join([*stray, wanted.more]).strip(),
        )
    if isinstance(wrong, OpsDrillError):
        wrong.message = plain(service, wrong.message)
    values = {**choices, "wanted": wanted, "wrong": wrong}
    return page(request, "start.html", values, here="start", status=422 if wrong else 200)


def _choices(service: Service, library: Library) -> dict[str, Mapping[str, object]]:
    catalogue = library.catalogue()
    good = [entry for entry in catalogue.entries if entry.key and not entry.problems]
    tags = Counter(f"tag:{tag}" for entry in good for tag in set(entry.tags))
    packs = Counter(f"pack:{entry.pack}" for entry in good if entry.pack)
    agents: Sequence[agent_list.Row] = ()
    agents_wrong = None
    try:
        agents = agent_list.by_name(service.place)
    except InvalidInput as error:
        agents_wrong = plain(service, error.message)
    return {
        "keys": {str(entry.key): entry for entry in good[:LISTED]},
        "groups": {**packs, **dict(tags.most_common(30))},
        "more_keys": {"number": max(0, len(good) - LISTED)},
        "agents": {row.name: row for row in agents},
        "agents_wrong": {"why": agents_wrong},
        "labs": {one.name: one for one in labs.all_named(service.place) if one.choice},
        "default_lab": {"name": labs.named_only(None, service.place).name},
    }
