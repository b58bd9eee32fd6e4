"""What is made once for all requests about scenarios and grading."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, ParamSpec, TypeVar

import anyio.to_thread
from anyio import CapacityLimiter
from fastapi import Depends, Request
from fastapi import Path as InPath

from opsdrill.api.problems import Refused
from opsdrill.api.service import Served, Service, once
from opsdrill.app.library import Library
from opsdrill.app.lines import OpenRecords
from opsdrill.app.regrades import Regrades
from opsdrill.errors import NotThere
from opsdrill.scenarios.load import LoadedScenario
from opsdrill.wire.problems import ProblemItem

P = ParamSpec("P")
T = TypeVar("T")

HEAVY_AT_ONCE, HEAVY_WAITING = 2, 8
"""Gradings and imports that are worked on at once, and those that may wait for them."""
LIGHT = 50_000
"""Bytes of a scenario whose checks nobody waits for long."""


async def _library(request: Request, service: Served) -> Library:
    return once(request, "library", lambda: Library(service.place, service.store))


Known = Annotated[Library, Depends(_library)]
"""The parameter of an endpoint that gets the library."""

Key = Annotated[str, InPath(max_length=100, examples=["disk-full"])]
"""A scenario's key in a path."""


async def _regrades(request: Request, service: Served) -> Regrades:
    def make() -> Regrades:
        made = Regrades(service.place, service.store)
        service.endings.append(made.close)
        return made

    return once(request, "regrades", make)


KnownRegrades = Annotated[Regrades, Depends(_regrades)]
"""The parameter of an endpoint that gets the regrades of the process."""


async def heavy(request: Request, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call what takes long and much memory; only some of that goes on at once.

    Raises:
        Refused: too many wait for it already.
    """
    known = once(request, "heavy", lambda: CapacityLimiter(HEAVY_AT_ONCE))
    if known.statistics().tasks_waiting >= HEAVY_WAITING:
        raise Refused(
            503,
            "too much is being graded, imported and checked; try again",
            headers={"Retry-After": "10"},
        )
    return await anyio.to_thread.run_sync(partial(function, *args, **kwargs), limiter=known)


async def light(request: Request, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call what is quick, on a thread of the store's."""
    service: Service = request.app.state.service
    return await service.call(function, *args, **kwargs)


async def weighed(
    request: Request, size: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call what reads a text of so many bytes: as heavy work where there are many.

    Raises:
        Refused: as `heavy`.
    """
    call = heavy if size > LIGHT else light
    return await call(request, function, *args, **kwargs)


async def _records(request: Request, service: Served) -> OpenRecords:
    return once(request, "records", lambda: OpenRecords(service.store))


KnownRecords = Annotated[OpenRecords, Depends(_records)]
"""The parameter of an endpoint that gets the records that were read last; pages have the same."""


async def scenario_named(service: Served, library: Library, key: str, path: str) -> LoadedScenario:
    """The scenario that a request names.

    Raises:
        Refused: there is none; names the place of the name.
    """
    try:
        return (await service.call(library.get, key)).loaded
    except NotThere:
        why = f"there is no scenario {key[:100]!r}"
        raise Refused(
            422,
            f"the request is refused: {path}: {why}",
            hint="`GET /api/v1/scenarios` lists them",
            errors=[ProblemItem(path=path, message=why)],
        ) from None
