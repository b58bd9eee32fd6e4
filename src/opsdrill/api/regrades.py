"""Kept runs graded again: begun, followed, cancelled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as InPath

from opsdrill.api.answers import told
from opsdrill.api.bodies import ToTheLetter
from opsdrill.api.entry import Who, needs
from opsdrill.api.known import Known, KnownRegrades, heavy, scenario_named
from opsdrill.api.parameters import in_reach, wrong
from opsdrill.api.problems import Refused, answers
from opsdrill.api.service import Served, Service
from opsdrill.app.library import Library
from opsdrill.app.own_folders import own_folders, without_paths
from opsdrill.app.regrades import Standing, Wish
from opsdrill.app.texts import below
from opsdrill.errors import InvalidInput
from opsdrill.scenarios.load import LoadedScenario
from opsdrill.store.cursor import decode_number, encode_number
from opsdrill.store.store import RunFilter
from opsdrill.wire.grading import (
    FlipsCounted,
    FlipTold,
    RegradeAsked,
    RegradeList,
    RegradeRow,
    RegradeTold,
    RunsWanted,
)

router = APIRouter(tags=["grading"], route_class=ToTheLetter)

LOOK_SECONDS = 0.05
"""How often a regrade is looked at for somebody who waits."""
_ROW = [part.name for part in fields(Standing) if part.name in RegradeRow.model_fields]
Id = Annotated[str, InPath(max_length=64, examples=["5f3a9c0d1e2b4a67"])]


@router.post(
    "/regrade",
    status_code=202,
    operation_id="regrade_runs",
    summary="Grade kept runs again",
    description=(
        "Grades runs again, with their own rules or edited ones. A preview only tells what would "
        "flip; with `preview: false`, which takes the role `edit`, new grades are kept beside the "
        "earlier ones. The answer comes at once: follow the address in `Location`, which can wait "
        "for the end. Regrades are done one after the other."
    ),
    response_model=RegradeRow,
    responses={
        202: {
            "headers": {"Location": {"description": "Where it is.", "schema": {"type": "string"}}}
        },
        **answers(403, 409, 422),
    },
    **needs("read"),
)
async def regrade_runs(
    *,
    asked: RegradeAsked,
    request: Request,
    library: Known,
    regrades: KnownRegrades,
    service: Served,
    who: Who,
) -> Response:
    if not asked.preview and not who.may("edit"):
        raise Refused(403, f"keeping new grades takes the role edit, and {who.name} has {who.role}")
    if asked.runs is not None and asked.filter is not None:
        raise wrong("filter", "cannot stand beside `runs`; give one of them")
    rules = await _rules(request, service, library, asked.rules)
    narrowed = _filter(asked.filter or RunsWanted())
    wish = Wish(asked.runs, narrowed, rules, asked.preview, who.name)
    begun = await service.call(regrades.begin, wish)
    return told(
        _row(begun, own_folders(service.place)),
        202,
        headers={"Location": f"/api/v1/regrades/{begun.id}"},
    )


async def _rules(
    request: Request, service: Service, library: Library, given: str | dict[str, object] | None
) -> LoadedScenario | None:
    if given is None:
        return None
    if isinstance(given, str):
        return await scenario_named(service, library, given, "rules")
    try:
        return await heavy(request, library.read_data, given)
    except InvalidInput as error:
        raise below(error, "rules") from None


def _filter(wanted: RunsWanted) -> RunFilter:
    return RunFilter(
        scenario=wanted.scenario,
        scenario_tag=wanted.tag,
        agent=wanted.agent,
        verdict=wanted.verdict,
        fault=wanted.fault,
        batch=wanted.batch,
        labels=tuple(wanted.labels.items()),
        since=in_reach(wanted.since, "filter.since"),
        until=in_reach(wanted.until, "filter.until"),
    )


@router.get(
    "/regrades",
    operation_id="list_regrades",
    summary="List regrades",
    description="Those that this server remembers, the newest first. A restart forgets them.",
    **needs("read"),
)
async def list_regrades(regrades: KnownRegrades, service: Served) -> RegradeList:
    names = own_folders(service.place)
    return RegradeList(regrades=[_row(each, names) for each in regrades.all()])


@router.get(
    "/regrades/{id}",
    operation_id="read_regrade",
    summary="Follow a regrade",
    description=(
        "How far it is, and what flipped so far. With `wait` the answer comes when it is over, or "
        "after so many seconds."
    ),
    response_model=RegradeTold,
    responses=answers(404),
    **needs("read"),
)
async def read_regrade(
    *,
    id: Id,
    regrades: KnownRegrades,
    service: Served,
    wait: Annotated[float, Query(ge=0, le=30, description="Seconds.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    cursor: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    start = 0 if cursor is None else decode_number(cursor)
    until = time.monotonic() + wait
    # It goes on in a thread, which no event of this loop hears of.
    while not (standing := regrades.get(id)).over and time.monotonic() < until:  # noqa: ASYNC110
        await asyncio.sleep(LOOK_SECONDS)
    names = own_folders(service.place)
    shown = standing.flips[start : start + limit]
    more = start + limit < len(standing.flips)
    return told(
        RegradeTold(
            **_row(standing, names).model_dump(),
            summary=[FlipsCounted(**asdict(each)) for each in standing.summary],
            flips=[FlipTold(**asdict(flip)) for flip in shown],
            cursor=encode_number(start + limit) if more else None,
            notes=[without_paths(line, names) for line in standing.notes],
        )
    )


@router.delete(
    "/regrades/{id}",
    status_code=204,
    operation_id="cancel_regrade",
    summary="Cancel a regrade",
    description=(
        "Stops it; new grades that it has kept by then stay. One that is over is forgotten. One "
        "that keeps grades, or that another began, takes the role `edit`."
    ),
    responses=answers(403, 404),
    **needs("read"),
)
async def cancel_regrade(id: Id, regrades: KnownRegrades, who: Who) -> Response:
    standing = regrades.get(id)
    own = standing.preview and standing.by == who.name
    if not own and not who.may("edit"):
        raise Refused(403, f"this takes the role edit, and {who.name} has {who.role}")
    regrades.cancel(id)
    return Response(status_code=204)


def _row(standing: Standing, names: Sequence[str]) -> RegradeRow:
    values = {name: getattr(standing, name) for name in _ROW}
    if standing.reason is not None:
        values["reason"] = without_paths(standing.reason, names)
    return RegradeRow(**values)
