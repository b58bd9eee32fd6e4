"""`/scenarios`: the list, and a scenario to read: ticket, hosts, how it is broken, rules, runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, get_args

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from opsdrill.api.known import Key, Known
from opsdrill.api.service import Served
from opsdrill.app.library import Expected, Row, Shown
from opsdrill.errors import InvalidInput
from opsdrill.model.rules import Rule
from opsdrill.scenarios.catalogue import Origin
from opsdrill.store.store import RunFilter, RunRow, Store
from opsdrill.web.entry import needs
from opsdrill.web.render import page
from opsdrill.web.rows import told_rows
from opsdrill.web.sure import confirmed, question

ROWS = 50
STRIP = 12
"""Runs whose verdicts a strip shows."""
LAST_RUNS = 20
ORIGINS: Sequence[Origin] = get_args(Origin)
_COMMON = ("label", "required", "validator")

router = APIRouter(include_in_schema=False)

Word = Annotated[str, Query(max_length=200)]


@dataclass(frozen=True, slots=True)
class ShownRule:
    """A rule to read: its own fields behind what all rules have."""

    label: str
    required: bool
    validator: str
    fields: Mapping[str, object]


def rule_shown(rule: Rule) -> ShownRule:
    """A rule with its own fields, those that say nothing left out."""
    data = rule.model_dump(mode="json", by_alias=True, exclude_none=True)
    own = {name: value for name, value in data.items() if name not in _COMMON and value != []}
    return ShownRule(rule.label, rule.required, rule.validator, own)


@router.get("/scenarios", **needs("read"))
async def scenarios(
    request: Request,
    service: Served,
    library: Known,
    *,
    search: Word = "",
    tag: Word = "",
    origin: Word = "",
    cursor: Annotated[str, Query(max_length=500)] = "",
) -> Response:
    chosen = next((one for one in ORIGINS if one == origin), None)
    found = await service.call(
        library.page,
        search=search.strip() or None,
        tag=tag.strip() or None,
        origin=chosen,
        limit=ROWS,
        cursor=cursor or None,
    )
    values = {
        "rows": found.rows,
        "strips": await service.call(_strips, service.store, found.rows),
        "next": found.cursor,
        "cursor": cursor,
        "search": search.strip(),
        "tag": tag.strip(),
        "origin": chosen or "",
        "origins": ORIGINS,
        "words": {"kept": "kept here", "pack": "came along", "folder": "in a folder"},
    }
    return page(request, "scenarios.html", values, here="scenarios")


def _strips(store: Store, rows: Sequence[Row]) -> dict[str, list[RunRow]]:
    """The last runs of each scenario, the oldest first."""
    return {
        row.key: list(store.page(RunFilter(scenario=row.key), limit=STRIP).rows)[::-1]
        for row in rows
    }


@router.get("/scenarios/{key}", **needs("read"))
async def scenario(
    request: Request,
    key: Key,
    service: Served,
    library: Known,
    version: Annotated[int | None, Query(ge=0, le=2**31 - 1)] = None,
) -> Response:
    try:
        shown = await service.call(library.get, key, version)
    except InvalidInput as error:
        values = {"key": key, "wrong": error}
        return page(request, "scenario_broken.html", values, here="scenarios", status=422)
    values = await _page_of(service, library, shown)
    return page(request, "scenario.html", {**values, "asked": version}, here="scenarios")


async def _page_of(service: Served, library: Known, shown: Shown) -> dict[str, object]:
    whole = shown.loaded.scenario
    versions = await service.call(library.versions, shown.key)
    runs = await service.call(service.store.page, RunFilter(scenario=shown.key), limit=LAST_RUNS)
    return {
        "shown": shown,
        "scenario": whole,
        "rules": [rule_shown(rule) for rule in whole.validation],
        "versions": versions,
        "latest": versions[0].number,
        "rows": told_rows(service.place, runs.rows),
    }


@router.post("/scenarios/{key}/delete", **needs("edit"))
async def delete(request: Request, key: Key, service: Served, library: Known) -> Response:
    if not await confirmed(request):
        asked = f"Delete the scenario {key} with all its versions? Its runs stay."
        return question(request, asked, "Delete it", back=f"/scenarios/{key}")
    await service.call(library.delete, key, expected=Expected())
    return RedirectResponse("/scenarios", 303)
