"""The client whose methods answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import TracebackType
from typing import Self, TypeVar

import httpx

from opsdrill.client import reach
from opsdrill.client.call import Answer, Call
from opsdrill.client.operation import Direct
from opsdrill.client.operations import Operations
from opsdrill.client.refusals import refusal
from opsdrill.client.streams import Event, Following, Reader

T = TypeVar("T")


class Client(Operations, Direct):
    """A server, and the right to call it; closed in the end, best by `with`.

    One client may be used by several threads.

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
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        server = reach.Reach.of(url, token)
        self._http = httpx.Client(
            base_url=server.url, headers=server.headers, transport=transport, follow_redirects=False
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends every connection."""
        self._http.close()

    def do(self, call: Call[T]) -> T:
        """Send a call that may be one of your own; its answer. Raises ApiError."""
        tried = 0
        while True:
            tried += 1
            try:
                answer = self._send(call)
            except httpx.TransportError as error:
                time.sleep(reach.lost(call, tried, error))
                continue
            if answer.is_success:
                return call.read(Answer(answer, answer.content))
            seconds = reach.wait(call, tried, answer)
            if seconds is None:
                raise refusal(answer, answer.content)
            time.sleep(seconds)

    def _send(self, call: Call[T]) -> httpx.Response:
        return self._http.request(
            call.method,
            call.path,
            params=call.parameters(),
            headers=reach.sent(call),
            content=call.body.pieces() if call.body else None,
            timeout=reach.timeout(call.seconds),
        )

    def follow(self, following: Following) -> Iterator[Event]:
        """Events as they come; after a break it goes on behind the last. Raises ApiError."""
        while True:
            reason = "the server ended the connection"
            try:
                with self._http.stream(
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
                        if (error := reach.stream_refusal(answer, answer.read())) is not None:
                            raise error
                    else:
                        reader = Reader(following)
                        for piece in answer.iter_bytes():
                            for event in reader.read(piece):
                                last = following.heard(event)
                                yield event
                                if last:
                                    return
            except httpx.TransportError as lost:
                reason = reach.why(lost)
            time.sleep(following.broke(reason))
