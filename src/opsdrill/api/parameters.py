"""Parameters that several addresses share: filters of runs, pages, ids."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, get_args, get_origin

from fastapi import Depends, Path, Query, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from opsdrill.api.problems import Refused
from opsdrill.errors import Fault
from opsdrill.model.fields import Instant
from opsdrill.model.problem import dotted
from opsdrill.model.result import RunState, Verdict
from opsdrill.store.store import RunFilter
from opsdrill.wire.problems import ProblemItem

Limit = Annotated[int, Query(ge=1, le=200, description="How many at most.")]
Cursor = Annotated[
    str | None, Query(max_length=500, description="The `cursor` of the page before, as it came.")
]
RunId = Annotated[str, Path(max_length=200, examples=["20261130-231217-1f3c9a7e"])]
BatchId = Annotated[str, Path(max_length=200, examples=["20261130-231217-0a1b2c3d"])]

_Text = Annotated[str | None, Query(max_length=200)]
_LABELS = 20
_KNOWN: dict[str, dict[str, bool]] = {}


def narrowed(
    *,
    scenario: Annotated[_Text, Query(description="A scenario's key.")] = None,
    tag: Annotated[_Text, Query(description="A tag of the scenario.")] = None,
    agent: Annotated[_Text, Query(description="An agent's name.")] = None,
    lab: Annotated[_Text, Query(description="A lab's name.")] = None,
    state: RunState | None = None,
    verdict: Verdict | None = None,
    fault: Fault | None = None,
    batch: _Text = None,
    label: Annotated[
        list[str] | None, Query(description="`NAME:VALUE`; a run must have all that are given.")
    ] = None,
    since: Annotated[
        Instant | None, Query(description="Runs created then or later; with an offset.")
    ] = None,
    until: Annotated[
        Instant | None, Query(description="Runs created before; with an offset.")
    ] = None,
) -> RunFilter:
    """What a listing of runs is narrowed to."""
    return RunFilter(
        scenario=scenario,
        scenario_tag=tag,
        agent=agent,
        lab=lab,
        state=state,
        verdict=verdict,
        fault=fault,
        batch=batch,
        labels=labels_of(label or []),
        since=in_reach(since, "query.since"),
        until=in_reach(until, "query.until"),
    )


Narrowed = Annotated[RunFilter, Depends(narrowed)]


def labels_of(written: list[str]) -> tuple[tuple[str, str], ...]:
    """Labels written as `NAME:VALUE`. Raises Refused."""
    pairs = []
    for text in written[: _LABELS + 1]:
        name, colon, value = text.partition(":")
        if not colon or not name or len(text) > 300:
            raise wrong("query.label", "must be NAME:VALUE")
        pairs.append((name, value))
    if len(written) > _LABELS:
        raise wrong("query.label", f"may stand there {_LABELS} times at most")
    return tuple(pairs)


def in_reach(moment: datetime | None, path: str) -> datetime | None:
    """A moment that can be counted from 1970 on. Raises Refused, with the moment's path."""
    if moment is not None and not 2 <= moment.year <= 9998:
        raise wrong(path, "is no moment that a run can have")
    return moment


def check_query(request: Request) -> None:
    """Refuse what an address does not know, and what stands there twice that may stand there once.

    A filter that is misspelt would let everything through.

    Raises:
        Refused: 422.
    """
    sent = [name for name, _ in request.query_params.multi_items()]
    if not sent:
        return
    known = _known(request.scope["route"])
    for name in sent:
        path = dotted(("query", name))
        if name not in known:
            names = ", ".join(sorted(known)) or "none"
            raise wrong(path, f"is no parameter of this address; known: {names}")
        if not known[name] and sent.count(name) > 1:
            raise wrong(path, "may stand there once")


def _known(route: APIRoute) -> dict[str, bool]:
    """The parameters that a route has in its query, and whether they may stand there often."""
    found = _KNOWN.get(route.unique_id)
    if found is None:
        found = _KNOWN[route.unique_id] = dict(_parameters(route.dependant))
    return found


def _parameters(dependant: Dependant) -> Iterator[tuple[str, bool]]:
    for field in dependant.query_params:
        kind = field.field_info.annotation
        yield field.alias, any(get_origin(each) is list for each in (kind, *get_args(kind)))
    for inner in dependant.dependencies:
        yield from _parameters(inner)


def wrong(path: str, message: str, *, hint: str | None = None) -> Refused:
    """The refusal of a part of a request that the framework cannot know to be wrong."""
    item = ProblemItem(path=path, message=message)
    return Refused(422, f"the request is refused: {path} {message}", hint=hint, errors=[item])
