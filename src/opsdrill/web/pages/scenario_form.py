"""`/scenarios/new`, `/scenarios/{key}/edit`: a scenario is written; and what its versions changed.

The form itself is made by scripts from the scenario's JSON (`static/form.js`), and saves through
the API. Without scripts the JSON is edited as text and sent to these addresses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response
from markupsafe import Markup, escape

from opsdrill.api.entry import Who
from opsdrill.api.known import Key, Known
from opsdrill.api.problems import Refused
from opsdrill.api.service import Served
from opsdrill.app.editing import Expected, Shown
from opsdrill.app.library import Library
from opsdrill.app.safe_text import UNSAFE_IN_BLOCK
from opsdrill.app.scenario_archive import written
from opsdrill.app.scenario_changes import Change, data_changes, version_changes
from opsdrill.errors import Conflict, InvalidInput, UsageError
from opsdrill.scenarios.files import Support
from opsdrill.scenarios.load import load_text
from opsdrill.scenarios.text import as_data
from opsdrill.web.entry import needs
from opsdrill.web.forms import Form, sent
from opsdrill.web.render import page

START = """{
  "key": "",
  "title": "",
  "ticket_title": "",
  "hosts": ["web-01"],
  "validation": []
}
"""
"""What a new scenario begins with."""
_COPY = "-copy"
_OWN_KEY = re.compile(r'("key"\s*:\s*)"[^"\\]*"')

router = APIRouter(include_in_schema=False)

Number = Annotated[int | None, Query(ge=0, le=2**31 - 1)]


def written_out(text: str) -> Markup:
    """A JSON text for a field that is sent back: the same data, nothing in it unseen."""

    def sign(match: re.Match[str]) -> str:
        units = match.group().encode("utf-16-be", "surrogatepass")
        return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))

    return Markup("\n") + escape(UNSAFE_IN_BLOCK.sub(sign, text))


def _page(request: Request, text: str, values: Mapping[str, object], status: int = 200) -> Response:
    known = {
        "text": written_out(text),
        "key": "",
        "title": "",
        "source": "",
        "etag": "",
        "number": "",
        "files": "[]",
        "wrong": None,
        "changes": None,
    }
    return page(request, "scenario_form.html", {**known, **values}, here="scenarios", status=status)


def _files_told(files: Mapping[str, Support]) -> str:
    return json.dumps([{"path": name, "size": file.size} for name, file in sorted(files.items())])


@router.get("/scenarios/new", **needs("edit"))
async def new(
    request: Request,
    service: Served,
    library: Known,
    source: Annotated[str, Query(alias="from", max_length=100)] = "",
) -> Response:
    if not source:
        return _page(request, START, {})
    shown = await service.call(library.get, source)
    return _page(request, _copy(shown), _copied(shown))


def _copy(shown: Shown) -> str:
    key = shown.key[: 100 - len(_COPY)] + _COPY
    return _OWN_KEY.sub(lambda found: f"{found[1]}{json.dumps(key)}", written(shown, json=True), 1)


def _copied(shown: Shown) -> dict[str, object]:
    return {"source": shown.key, "files": _files_told(shown.loaded.files)}


@router.post("/scenarios/new", **needs("edit"))
async def create(request: Request, service: Served, library: Known, who: Who) -> Response:
    form = await sent(request)
    text, source = _text(form), form.one("source")
    files = await service.call(library.files, source) if source else {}
    try:
        whole = await service.call(load_text, text, files, json=True)
        shown = await service.call(library.add, whole, by=who.name)
    except (InvalidInput, Conflict) as error:
        status = 422 if isinstance(error, InvalidInput) else 409
        values = {"wrong": error, "source": source, "files": _files_told(files)}
        return _page(request, text, values, status)
    return RedirectResponse(f"/scenarios/{shown.key}", 303)


@router.get("/scenarios/{key}/edit", **needs("edit"))
async def edit(request: Request, key: Key, service: Served, library: Known) -> Response:
    shown = await _editable(service, library, key)
    return _page(request, written(shown, json=True), _edited(shown))


@router.post("/scenarios/{key}/edit", **needs("edit"))
async def save(request: Request, key: Key, service: Served, library: Known, who: Who) -> Response:
    shown = await _editable(service, library, key)
    form = await sent(request)
    text, etag = _text(form), form.one("etag")
    try:
        await service.call(
            library.replace, key, text, json=True, expected=Expected((etag,)), by=who.name
        )
    except InvalidInput as error:
        values = {**_edited(shown), "etag": etag, "number": form.one("number"), "wrong": error}
        return _page(request, text, values, 422)
    except Conflict as error:
        # Sent once more it takes the place of what was kept meanwhile, which is shown now.
        both = await _meanwhile(service, library, shown, text, form.number("number"))
        return _page(request, text, {**_edited(shown), "wrong": error, "changes": both}, 412)
    return RedirectResponse(f"/scenarios/{key}", 303)


def _text(form: Form) -> str:
    return next((value for name, value in form.fields if name == "text"), "")


async def _editable(service: Served, library: Library, key: str) -> Shown:
    shown = await service.call(library.get, key)
    if shown.origin != "kept":
        raise Refused(
            409,
            f"scenario {key!r} is in a file of the server, which is only read here",
            hint=f"copy it: /scenarios/new?from={key}",
        )
    return shown


def _edited(shown: Shown) -> dict[str, object]:
    return {
        "key": shown.key,
        "title": shown.loaded.scenario.title,
        "etag": shown.etag,
        "number": shown.number,
        "files": _files_told(shown.loaded.files),
    }


@router.post("/scenarios/{key}/meanwhile", **needs("edit"))
async def meanwhile(request: Request, key: Key, service: Served, library: Known) -> Response:
    """What both sides changed, for an editor whose version is no longer the latest."""
    form = await sent(request)
    shown = await service.call(library.get, key)
    both = await _meanwhile(service, library, shown, _text(form), form.number("base"))
    return page(request, "parts/meanwhile.html", {"changes": both})


async def _meanwhile(
    service: Served, library: Library, shown: Shown, text: str, base: int | None
) -> dict[str, object]:
    """Theirs and mine, each against the version that I began with."""
    mine: list[Change] | None = None
    begun: Shown | None
    try:
        begun = await service.call(library.get, shown.key, base)
    except UsageError:
        begun = None
    if begun is not None:
        try:
            whole = await service.call(load_text, text, None, json=True)
            before = as_data(begun.loaded.scenario)
            mine = await service.call(data_changes, before, as_data(whole.scenario))
        except InvalidInput:
            mine = None
        theirs = await service.call(version_changes, begun.loaded, shown.loaded)
    else:
        theirs = []
    return {"theirs": theirs, "mine": mine, "now": shown, "begun": begun}


@router.get("/scenarios/{key}/changes", **needs("read"))
async def changes(
    request: Request,
    key: Key,
    service: Served,
    library: Known,
    *,
    before: Annotated[Number, Query(alias="from")] = None,
    after: Annotated[Number, Query(alias="to")] = None,
) -> Response:
    """What one version has otherwise than another; the latest and the one before it if not told."""
    versions = await service.call(library.versions, key)
    newer = versions[0].number if after is None else after
    known = [one.number for one in versions]
    older = before
    if older is None:
        older = next((number for number in known if number < newer), newer)
    old = await service.call(library.get, key, older)
    new_one = await service.call(library.get, key, newer)
    found = await service.call(version_changes, old.loaded, new_one.loaded)
    values = {"old": old, "new": new_one, "versions": versions, "changes": found, "key": key}
    return page(request, "scenario_changes.html", values, here="scenarios")
