"""Events: server-sent, live, and gone on with from the last one that was seen."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event
from starlette.types import Receive, Scope, Send

from opsdrill.api.connection import most_connections
from opsdrill.api.entry import Who, needs, still_known
from opsdrill.api.parameters import RunId
from opsdrill.api.problems import Refused, answers
from opsdrill.api.service import Served, Service
from opsdrill.app.access import Caller
from opsdrill.app.events.followers import TooManyFollowers
from opsdrill.app.events.news import News
from opsdrill.app.events.position import read_position
from opsdrill.app.events.progress import read_progress
from opsdrill.app.events.runs_tail import check_batch
from opsdrill.app.history import there
from opsdrill.errors import OpsDrillError

router = APIRouter(tags=["events"])
log = logging.getLogger(__name__)

AGAIN_MILLISECONDS = 2000
"""How long a browser waits before it comes again."""
KNOWN_SECONDS = 5.0
"""How long a follower is told news without a look whether the token still holds."""
_PING = b": still here\n\n"

LastEventId = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        max_length=8192,
        description="The `id` of the last event that was seen; what follows it is told.",
    ),
]
_EVENT = {
    "description": "One event; before OpenAPI 3.2 that is what tools take the schema for.",
    "type": "object",
    "properties": {
        "event": {"type": "string"},
        "data": {
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": {"type": "object"},
        },
        "id": {"type": "string"},
        "retry": {"type": "integer"},
    },
}
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events, until the end.",
        "content": {
            "text/event-stream": {
                "schema": _EVENT,
                "example": 'event: phase\ndata: {"run":"20261130-231217-1f3c9a7e","attempt":1,'
                '"phase":{"name":"setup","status":"running"}}\nid: 1.5.0\n\n',
            }
        },
    }
}


@router.get(
    "/runs/{run}/events",
    response_class=StreamingResponse,
    operation_id="follow_run",
    summary="Follow a run",
    description=(
        "Server-sent events: `phase` (one begins or ends), `job` (what the agent does), `step` "
        "(what it waits for; without an id, since it is gone when it was not heard), `result` "
        "(the last one). With `Last-Event-ID` it goes on behind that event: nothing is lost and "
        "nothing told twice. Behind the result there is nothing: 204."
    ),
    responses={
        **_STREAM,
        204: {"description": "Everything was seen."},
        **answers(400, 404, 429, 503),
    },
    **needs("read"),
)
async def follow_run(
    request: Request, run: RunId, service: Served, who: Who, last_event_id: LastEventId = None
) -> Response:
    await service.call(_check_run, service, run)
    position = read_position(last_event_id)
    if position is None:
        return Response(status_code=204)
    followers = service.engine.followers
    return EventStream(request, service, who, followers.run(run, position))


@router.get(
    "/events",
    response_class=StreamingResponse,
    operation_id="follow_runs",
    summary="Follow a batch, or all runs",
    description=(
        "Server-sent events: `run` (the run as a listing shows it, each time its state changes), "
        "`phase` and `step` (without an id), `reset` (too much happened meanwhile: list the runs "
        "again). It begins with the runs of the batch, or with all that are not over, and does "
        "not end by itself."
    ),
    responses={**_STREAM, **answers(400, 404, 429, 503)},
    **needs("read"),
)
async def follow_runs(
    request: Request,
    service: Served,
    who: Who,
    batch: Annotated[str | None, Query(max_length=200)] = None,
    last_event_id: LastEventId = None,
) -> Response:
    last = read_progress(last_event_id) if last_event_id is not None else None
    if batch is not None:
        await service.call(check_batch, service.store, batch)
    return EventStream(request, service, who, service.engine.followers.runs(batch, last))


def _check_run(service: Service, run: str) -> None:
    with there(run):
        service.store.get(run)


class EventStream(StreamingResponse):
    """News as server-sent events, to one follower, who takes a place for as long as it lasts."""

    media_type = "text/event-stream"

    def __init__(
        self, request: Request, service: Service, who: Caller, news: AsyncIterator[News | None]
    ) -> None:
        # Whoever does not follow needs connections too.
        room = most_connections() // 2
        self._place = service.engine.followers.admitted(who.token, room)
        super().__init__(
            _written(news, partial(still_known, request, service)),
            headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with self._place:
                await super().__call__(scope, receive, send)
        except TooManyFollowers as error:
            status = 429 if error.own else 503
            raise Refused(
                status, error.message, hint=error.hint, headers={"Retry-After": "10"}
            ) from None


async def _written(
    news: AsyncIterator[News | None], known: Callable[[], Awaitable[bool]]
) -> AsyncIterator[bytes]:
    """News in the form of server-sent events, https://html.spec.whatwg.org/#server-sent-events.

    They end for a follower who is not `known` any more.
    """
    yield format_sse_event(retry=AGAIN_MILLISECONDS)
    clock = asyncio.get_running_loop().time
    looked = clock()
    try:
        async with aclosing(news) as told:  # type: ignore[type-var]
            async for one in told:
                if clock() - looked >= KNOWN_SECONDS:
                    if not await known():
                        return
                    looked = clock()
                yield _PING if one is None else _event(one)
    except KeyError:
        return  # it was deleted
    except OpsDrillError as error:
        log.warning("events end, and may be gone on with: %s", error)


def _event(news: News) -> bytes:
    return format_sse_event(data_str=news.data.decode(), event=news.kind, id=news.id)
