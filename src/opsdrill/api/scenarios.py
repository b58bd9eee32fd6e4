"""Scenarios: read wherever they are, and edited in the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from opsdrill.api.answers import (
    Has,
    MaybeExpected,
    Seen,
    edited,
    editing,
    received,
    told,
    unchanged,
    with_body,
)
from opsdrill.api.bodies import json_body, text_body
from opsdrill.api.entry import Who, needs
from opsdrill.api.known import LIGHT, Key, Known, weighed
from opsdrill.api.parameters import Cursor, Limit
from opsdrill.api.problems import answers, item
from opsdrill.api.service import Served
from opsdrill.app import scenario_archive, scenarios
from opsdrill.app.editing import Shown
from opsdrill.app.library_rows import Row
from opsdrill.app.merge_patch import merged
from opsdrill.app.own_folders import own_folders
from opsdrill.app.scenario_files import BYTES_LIMIT
from opsdrill.errors import InvalidInput, Problem
from opsdrill.scenarios.load import LoadedScenario
from opsdrill.wire.scenarios import (
    EXAMPLE,
    FileTold,
    ScenarioPage,
    ScenarioRow,
    ScenarioTold,
    Validated,
)

router = APIRouter(tags=["scenarios"])

UPLOAD_BYTES = BYTES_LIMIT + 8 * 1024 * 1024
"""Of a scenario's archive, which may pack badly."""
TEXTS = ("application/json", "application/yaml")
_ETAG = {"ETag": {"description": "What `If-Match` takes.", "schema": {"type": "string"}}}
_LOCATION = {"Location": {"description": "Where it is.", "schema": {"type": "string"}}}
SHOWN = {"model": ScenarioTold, "headers": _ETAG}
"""The answer that shows a scenario."""
_EDIT = answers(404, 409, 412, 415, 422, 428)
EDITED = {200: SHOWN, **_EDIT}
"""The answers to an edit."""


@router.get(
    "/scenarios",
    operation_id="list_scenarios",
    summary="List scenarios",
    description=(
        "All scenarios by key: those in the store, those of the packs that come along and those "
        "of the folders of the settings. One in a file that is broken is listed with its problems."
    ),
    **needs("read"),
)
async def list_scenarios(
    *,
    library: Known,
    service: Served,
    search: Annotated[
        str | None, Query(max_length=200, description="In key, title or a tag.")
    ] = None,
    tag: Annotated[str | None, Query(max_length=200)] = None,
    origin: Annotated[Literal["kept", "pack", "folder"] | None, Query()] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ScenarioPage:
    page = await service.call(
        library.page, search=search, tag=tag, origin=origin, limit=limit, cursor=cursor
    )
    names = own_folders(service.place)
    return ScenarioPage(scenarios=[_row(row, names) for row in page.rows], cursor=page.cursor)


@router.post(
    "/scenarios",
    status_code=201,
    operation_id="create_scenario",
    summary="Create a scenario",
    description=(
        "Keeps a new scenario in the store. It is refused where `opsdrill lint` refuses it: every "
        "problem names its path, and line and column of the body. Its files are sent afterwards, "
        "or all at once as an archive by import."
    ),
    response_model=ScenarioTold,
    responses={201: {**SHOWN, "headers": {**_ETAG, **_LOCATION}}, **answers(409, 415, 422)},
    **with_body(needs("edit"), *TEXTS, description="A scenario.", example=EXAMPLE),
)
async def create_scenario(request: Request, library: Known, who: Who) -> Response:
    text, json = await text_body(request)
    kept = await weighed(request, len(text), library.create, text, json=json, by=who.name)
    return _created(kept)


@router.post(
    "/scenarios/validate",
    operation_id="validate_scenario",
    summary="Check a scenario's text",
    description=(
        "What is wrong with a text, as `opsdrill lint` tells it: each problem with its path, line, "
        "column, severity and code. Nothing is kept. Any text gets an answer."
    ),
    response_model=Validated,
    responses=answers(415),
    **with_body(needs("read"), *TEXTS, description="Any text.", example=EXAMPLE),
)
async def validate_scenario(
    request: Request,
    library: Known,
    key: Annotated[
        str | None,
        Query(max_length=100, description="Whose files are meant, if not of the text's own key."),
    ] = None,
    notes: Annotated[
        bool, Query(description="Also what depends on judgement; looks at kept runs.")
    ] = False,
) -> Response:
    whole: LoadedScenario | None = None
    found: Sequence[Problem] = ()
    try:
        text, json = await text_body(request)
    except InvalidInput as error:
        found = error.problems
    else:
        size = LIGHT + 1 if notes else len(text)
        whole, found = await weighed(
            request, size, library.check, text, json=json, key=key, notes=notes
        )
    return told(
        Validated(
            valid=whole is not None and all(problem.severity != "error" for problem in found),
            key=whole.scenario.key if whole else None,
            version=whole.version if whole else None,
            problems=[item(problem, ()) for problem in found],
        )
    )


@router.get(
    "/scenarios/schema",
    operation_id="read_scenario_schema",
    summary="Read the JSON Schema of scenarios",
    description="For editors that complete and check.",
    responses={200: {"content": {"application/schema+json": {"schema": {"type": "object"}}}}},
    response_class=Response,
    **needs("read"),
)
async def read_scenario_schema(service: Served) -> Response:
    content = await service.call(scenarios.schema, "scenario")
    return Response(content, media_type="application/schema+json")


@router.post(
    "/scenarios/import",
    status_code=201,
    operation_id="import_scenario",
    summary="Import a scenario",
    description=(
        "Keeps the scenario of a JSON or YAML text, or of a ZIP archive of its folder: the "
        "scenario's file at the archive's root or in one folder there, and its files beside it. "
        "With `If-Match` it takes the place of the one that has its key: an archive with all "
        "files, a text with the files that are kept."
    ),
    response_model=ScenarioTold,
    responses={
        200: {**SHOWN, "description": "It took the other's place"},
        201: {**SHOWN, "headers": {**_ETAG, **_LOCATION}},
        **answers(404, 409, 412, 422),
    },
    **with_body(
        needs("edit", upload=UPLOAD_BYTES),
        *TEXTS,
        "application/zip",
        description="A scenario, or the archive of its folder.",
        example={**EXAMPLE, "key": "disk-full-imported"},
    ),
)
async def import_scenario(
    *, request: Request, library: Known, service: Served, who: Who, wanted: MaybeExpected
) -> Response:
    async with received(request, service) as upload:
        size, folder = upload.path.stat().st_size, upload.folder / "unpacked"
        whole = await weighed(request, size, scenario_archive.sent, upload.path, folder)
        if wanted is None:
            return _created(await weighed(request, size, library.add, whole, by=who.name))
        with editing():
            done = await weighed(
                request, size, library.replace_with, whole, expected=wanted, by=who.name
            )
        return scenario_answer(done)


@router.get(
    "/scenarios/{key}",
    operation_id="read_scenario",
    summary="Read a scenario",
    description="One scenario in full. Its ETag is what edits give back as `If-Match`.",
    response_model=ScenarioTold,
    responses={200: SHOWN, 304: {"description": "As the caller has it"}, **answers(404, 422)},
    **needs("read"),
)
async def read_scenario(key: Key, has: Has, library: Known, service: Served) -> Response:
    shown = await service.call(library.get, key)
    if (known := unchanged(has, shown.etag)) is not None:
        return known
    return scenario_answer(shown)


@router.put(
    "/scenarios/{key}",
    operation_id="replace_scenario",
    summary="Replace a scenario",
    description=(
        "Keeps the scenario's next version; its files stay, and so does its key. `If-Match` must "
        "say which version was edited."
    ),
    response_model=ScenarioTold,
    responses=EDITED,
    **with_body(needs("edit"), *TEXTS, description="A scenario.", example=EXAMPLE),
)
async def replace_scenario(
    *, key: Key, request: Request, library: Known, who: Who, wanted: Seen
) -> Response:
    text, json = await text_body(request)
    with editing():
        done = await weighed(
            request,
            len(text),
            library.replace,
            key,
            text,
            json=json,
            expected=wanted,
            by=who.name,
        )
    return scenario_answer(done)


@router.patch(
    "/scenarios/{key}",
    operation_id="patch_scenario",
    summary="Change parts of a scenario",
    description=(
        "A JSON merge patch (RFC 7396): keys that are named take the new value, null removes one, "
        "and a list such as `validation` is replaced whole."
    ),
    response_model=ScenarioTold,
    responses=EDITED,
    **with_body(
        needs("edit"),
        "application/merge-patch+json",
        "application/json",
        description="What changes.",
        example={"title": "The disk is full", "tags": ["disk", "web"]},
    ),
)
async def patch_scenario(
    *, key: Key, request: Request, library: Known, who: Who, wanted: Seen
) -> Response:
    patch = await json_body(request)
    with editing():
        done = await weighed(
            request,
            len(await request.body()),
            library.edit,
            key,
            lambda data: merged(data, patch),
            expected=wanted,
            by=who.name,
        )
    return scenario_answer(done)


@router.delete(
    "/scenarios/{key}",
    status_code=204,
    operation_id="delete_scenario",
    summary="Delete a scenario",
    description="Removes it with all its versions. Runs keep the exact version that they ran.",
    responses=_EDIT,
    **needs("edit"),
)
async def delete_scenario(*, key: Key, library: Known, service: Served, wanted: Seen) -> Response:
    await edited(service, library.delete, key, expected=wanted)
    return Response(status_code=204)


def _row(row: Row, names: list[str]) -> ScenarioRow:
    return ScenarioRow(
        key=row.key,
        title=row.title,
        tags=list(row.tags),
        hosts=list(row.hosts),
        rules=row.rules,
        origin=row.origin,
        pack=row.pack,
        number=row.number,
        version=row.version,
        changed_at=row.changed_at,
        by=row.by,
        problems=[item(problem, names) for problem in row.problems],
    )


def files_told(shown: Shown) -> list[FileTold]:
    """The files of a scenario, by their paths."""
    return [
        FileTold(path=source, size=file.size, digest=file.digest)
        for source, file in sorted(shown.loaded.files.items())
    ]


def _created(shown: Shown) -> Response:
    found = scenario_answer(shown, 201)
    found.headers["location"] = f"/api/v1/scenarios/{shown.key}"
    return found


def scenario_answer(shown: Shown, status: int = 200) -> Response:
    """A scenario in full, with its ETag."""
    body = ScenarioTold(
        scenario=shown.loaded.scenario,
        origin=shown.origin,
        number=shown.number,
        version=shown.loaded.version,
        files=files_told(shown),
        created_at=shown.created_at,
        changed_at=shown.changed_at,
        by=shown.by,
        warnings=[item(problem, ()) for problem in shown.warnings],
    )
    content = body.model_dump_json(by_alias=True, exclude_none=True)
    headers = {"ETag": shown.etag}
    return Response(content, status, headers=headers, media_type="application/json")
