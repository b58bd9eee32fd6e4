"""The client whose methods are awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self, TypeVar

import httpx

from opsdrill.client import reach
from opsdrill.client.call import Answer, Call
from opsdrill.client.operation import Awaited
from opsdrill.client.operations import Operations
from opsdrill.client.refusals import refusal
from opsdrill.client.streams import Event, Following, Reader

T = TypeVar("T")


class AsyncClient(Operations, Awaited):
    """As `Client`, for asynchronous programs: used by `async with`, on one loop.

    Args:
        url: the server's address; without it `OPSDRILL_URL`.
        token: what vouches for the caller; without it `OPSDRILL_TOKEN`.
        transport: another way to the server than the network.

    Raises:
        UsageError: no address, or a token that is none.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        server = reach.Reach.of(url, token)
        self._http = httpx.AsyncClient(
            base_url=server.url, headers=server.headers, transport=transport, follow_redirects=False
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends every connection."""
        await self._http.aclose()

    async def do(self, call: Call[T]) -> T:
        """Send a call that may be one of your own; its answer. Raises ApiError."""
        tried = 0
        while True:
            tried += 1
            try:
                answer = await self._send(call)
            except httpx.TransportError as error:
                await asyncio.sleep(reach.lost(call, tried, error))
                continue
            if answer.is_success:
                return call.read(Answer(answer, answer.content))
            seconds = reach.wait(call, tried, answer)
            if seconds is None:
                raise refusal(answer, answer.content)
            await asyncio.sleep(seconds)

    async def _send(self, call: Call[T]) -> httpx.Response:
        return await self._http.request(
            call.method,
            call.path,
            params=call.parameters(),
            headers=await asyncio.to_thread(reach.sent, call),
            content=call.body.later_pieces() if call.body else None,
            timeout=reach.timeout(call.seconds),
        )

    async def follow(self, following: Following) -> AsyncIterator[Event]:
        """Events as they come; after a break it goes on behind the last. Raises ApiError."""
        while True:
            reason = "the server ended the connection"
            try:
                async with self._http.stream(
                    "GET",
                    following.path,
                    params=following.query,
                    headers=following.headers(),
                    timeout=reach.STREAM,
                ) as answer:
                    if answer.status_code == 204:
                        return
                    if answer.status_code != 200:
                        reason = f"the server answered {answer.status_code}"
                        if (
                            error := reach.stream_refusal(answer, await answer.aread())
                        ) is not None:
                            raise error
                    else:
                        reader = Reader(following)
                        async for piece in answer.aiter_bytes():
                            for event in reader.read(piece):
                                last = following.heard(event)
                                yield event
                                if last:
                                    return
            except httpx.TransportError as lost:
                reason = reach.why(lost)
            await asyncio.sleep(following.broke(reason))
