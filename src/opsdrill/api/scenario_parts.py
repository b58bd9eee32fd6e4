"""The rules of a scenario one by one, and its versions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as InPath

from opsdrill.api.answers import Seen, edited, with_body
from opsdrill.api.bodies import json_body
from opsdrill.api.entry import Who, needs
from opsdrill.api.known import Key, Known
from opsdrill.api.problems import answers
from opsdrill.api.scenarios import EDITED, SHOWN, scenario_answer
from opsdrill.api.service import Served
from opsdrill.app.rule_edits import added, put, removed
from opsdrill.wire.scenarios import ScenarioTold, VersionList, VersionTold

router = APIRouter(tags=["scenarios"])

Number = Annotated[int, InPath(ge=0, le=2**31 - 1)]
_RULE = {
    "label": "Uploads work again",
    "validator": "host_state",
    "run": "curl -fsS -T /etc/hostname http://localhost/upload",
}


@router.post(
    "/scenarios/{key}/validation",
    operation_id="add_rule",
    summary="Add a rule",
    description="Puts a rule behind the last one, or before the one at `at`.",
    response_model=ScenarioTold,
    responses=EDITED,
    **with_body(needs("edit"), "application/json", description="A rule.", example=_RULE),
)
async def add_rule(
    *,
    key: Key,
    request: Request,
    library: Known,
    service: Served,
    who: Who,
    wanted: Seen,
    at: Annotated[int | None, Query(ge=0, le=100_000)] = None,
) -> Response:
    change = added(await json_body(request), at)
    return scenario_answer(
        await edited(service, library.edit, key, change, expected=wanted, by=who.name)
    )


@router.put(
    "/scenarios/{key}/validation/{index}",
    operation_id="replace_rule",
    summary="Replace a rule",
    description="Puts a rule in the place of the one at `index`, counted from 0.",
    response_model=ScenarioTold,
    responses=EDITED,
    **with_body(needs("edit"), "application/json", description="A rule.", example=_RULE),
)
async def replace_rule(
    *,
    key: Key,
    index: Number,
    request: Request,
    library: Known,
    service: Served,
    who: Who,
    wanted: Seen,
) -> Response:
    change = put(await json_body(request), index)
    return scenario_answer(
        await edited(service, library.edit, key, change, expected=wanted, by=who.name)
    )


@router.delete(
    "/scenarios/{key}/validation/{index}",
    operation_id="remove_rule",
    summary="Remove a rule",
    description="Takes the rule at `index`, counted from 0, out of the scenario.",
    response_model=ScenarioTold,
    responses=EDITED,
    **needs("edit"),
)
async def remove_rule(
    *, key: Key, index: Number, library: Known, service: Served, who: Who, wanted: Seen
) -> Response:
    return scenario_answer(
        await edited(service, library.edit, key, removed(index), expected=wanted, by=who.name)
    )


@router.get(
    "/scenarios/{key}/versions",
    operation_id="list_scenario_versions",
    summary="List the versions of a scenario",
    description="The latest first. One in a file has the version that the file has, number 0.",
    responses=answers(404, 422),
    **needs("read"),
)
async def list_scenario_versions(key: Key, library: Known, service: Served) -> VersionList:
    found = await service.call(library.versions, key)
    return VersionList(
        key=key,
        versions=[
            VersionTold(
                number=each.number, version=each.version, created_at=each.created_at, by=each.by
            )
            for each in found
        ],
    )


@router.get(
    "/scenarios/{key}/versions/{number}",
    operation_id="read_scenario_version",
    summary="Read a version of a scenario",
    description="The scenario in full as it was then.",
    response_model=ScenarioTold,
    responses={200: SHOWN, **answers(404, 422)},
    **needs("read"),
)
async def read_scenario_version(
    key: Key, number: Number, library: Known, service: Served
) -> Response:
    return scenario_answer(await service.call(library.get, key, number))
