"""The files that are kept with a scenario, and scenarios as files to take away."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as InPath
from fastapi.responses import StreamingResponse

from opsdrill.api.answers import Has, Seen, edited, received, unchanged, with_body
from opsdrill.api.entry import Who, needs
from opsdrill.api.known import Key, Known
from opsdrill.api.problems import Refused, answers
from opsdrill.api.scenarios import EDITED, files_told, scenario_answer
from opsdrill.api.service import Served
from opsdrill.app import scenario_archive
from opsdrill.app.editing import Shown
from opsdrill.scenarios.files import FILE_LIMIT
from opsdrill.wire.scenarios import FileList, ScenarioTold

router = APIRouter(tags=["scenarios"])

Format = Literal["yaml", "json", "zip"]
_MEDIA: dict[Format, str] = {
    "yaml": "application/yaml",
    "json": "application/json",
    "zip": "application/zip",
}
_BINARY = {"schema": {"type": "string", "format": "binary"}}
Source = Annotated[str, InPath(max_length=1000, examples=["files/app.conf"])]


@router.get(
    "/scenarios/{key}/export",
    operation_id="export_scenario",
    summary="Export a scenario",
    description=(
        "The scenario as a file. `zip` is its whole folder with its files, and imports again to "
        "the same version; `yaml` and `json` are the scenario alone."
    ),
    response_class=Response,
    responses={
        200: {
            "description": "The file",
            "content": {
                "application/yaml": {"schema": {"type": "object"}},
                "application/json": {"schema": {"type": "object"}},
                "application/zip": _BINARY,
            },
        },
        **answers(404, 422),
    },
    **needs("read"),
)
async def export_scenario(
    *,
    key: Key,
    library: Known,
    service: Served,
    format: Annotated[Format, Query()] = "yaml",
    number: Annotated[int | None, Query(ge=0, le=2**31 - 1)] = None,
) -> Response:
    shown = await service.call(library.get, key, number)
    headers = {
        "ETag": shown.etag,
        "Content-Disposition": f'attachment; filename="{shown.key}.{format}"',
    }
    media = _MEDIA[format]
    if format == "zip":
        pieces = await service.call(scenario_archive.packed, shown)
        return StreamingResponse(pieces, headers=headers, media_type=media)
    text = await service.call(scenario_archive.written, shown, json=format == "json")
    return Response(text, headers=headers, media_type=media)


@router.get(
    "/scenarios/{key}/files",
    operation_id="list_scenario_files",
    summary="List the files of a scenario",
    description="The files that are kept with it, or that it has in its folder.",
    responses=answers(404, 422),
    **needs("read"),
)
async def list_scenario_files(
    key: Key, library: Known, service: Served, response: Response
) -> FileList:
    shown = await service.call(library.get, key)
    response.headers["ETag"] = shown.etag
    return FileList(files=files_told(shown))


@router.get(
    "/scenarios/{key}/files/{path:path}",
    operation_id="read_scenario_file",
    summary="Read a file of a scenario",
    description="Its content, to be saved. Its ETag is its digest.",
    response_class=Response,
    responses={
        200: {"description": "The content", "content": {"application/octet-stream": _BINARY}},
        304: {"description": "As the caller has it"},
        **answers(404, 422),
    },
    **needs("read"),
)
async def read_scenario_file(
    key: Key, path: Source, has: Has, library: Known, service: Served
) -> Response:
    shown = await service.call(library.get, key)
    file = shown.loaded.files.get(path)
    if file is None:
        raise Refused(404, f"the scenario has no file {path[:200]!r}")
    etag = f'"{file.digest}"'
    if (known := unchanged(has, etag)) is not None:
        return known
    content = await service.call(file.read)
    name = quote(path.rpartition("/")[2], safe="")
    return Response(
        content,
        headers={"ETag": etag, "Content-Disposition": f"attachment; filename*=UTF-8''{name}"},
        media_type="application/octet-stream",
    )


@router.put(
    "/scenarios/{key}/files/{path:path}",
    operation_id="put_scenario_file",
    summary="Keep a file with a scenario",
    description=(
        "Keeps the body under this path, in place of what was there. That makes the scenario's "
        "next version; `files` of the scenario says which hosts get it, and where."
    ),
    response_model=ScenarioTold,
    responses=EDITED,
    **with_body(
        needs("edit", upload=FILE_LIMIT), "application/octet-stream", description="The content."
    ),
)
async def put_scenario_file(
    *,
    key: Key,
    path: Source,
    request: Request,
    library: Known,
    service: Served,
    who: Who,
    wanted: Seen,
) -> Response:

    def put(content: bytes) -> Shown:
        return library.put_file(key, path, content, expected=wanted, by=who.name)

    async with received(request, service) as upload:
        content = await service.call(upload.path.read_bytes)
        return scenario_answer(await edited(service, put, content))


@router.delete(
    "/scenarios/{key}/files/{path:path}",
    operation_id="remove_scenario_file",
    summary="Remove a file of a scenario",
    description="Keeps it no longer. Refused as long as the scenario puts it on hosts.",
    response_model=ScenarioTold,
    responses=EDITED,
    **needs("edit"),
)
async def remove_scenario_file(
    *, key: Key, path: Source, library: Known, service: Served, who: Who, wanted: Seen
) -> Response:
    return scenario_answer(
        await edited(service, library.remove_file, key, path, expected=wanted, by=who.name)
    )
