"""One connection of a client: what is too slow or too much is ended before a request is made of it.

The server's own limits begin with a whole request; these here are for what comes before and after.
"""

from __future__ import annotations

import asyncio
import resource
from typing import cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from opsdrill.api.guard import HEADERS
from opsdrill.api.problems import MEDIA, details

CONNECTIONS = 2000
"""Connections at once; past them those are ended that ask for nothing. See `most_connections`."""
ROOM = 50
"""Connections that are ended together, so that room need not be looked for each time."""
HEAD_SECONDS = 10.0
"""How long the head of a request may take."""
STALLED_SECONDS = 60.0
"""How long a client may take nothing of an answer that waits for it."""


def most_connections() -> int:
    """`CONNECTIONS`, or half of the files that this process may open: runs need the other half."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return CONNECTIONS if files == resource.RLIM_INFINITY else min(CONNECTIONS, files // 2)


class Connection(H11Protocol):
    """A connection with bounds of its own, on top of the server's."""

    _head: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None
    _asked = False
    _since = 0.0
    """When it was last heard of: it began, or an answer was over."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast("asyncio.Transport", transport))
        self._since = self.loop.time()
        if len(self.connections) > most_connections() and not self._room():
            self.transport.abort()
            return
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_waiting()
        if self._stalled is not None:
            self._stalled.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._under_way():
            self._end_waiting()
        elif self._head is None and self.timeout_keep_alive_task is None:
            self._wait_for_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._asked, self._since = True, self.loop.time()
        self._end_waiting()  # what follows is bounded by the server itself, until data comes

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(STALLED_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is told so in the shape of all errors."""
        body = details(400, msg[:1].lower() + msg[1:].rstrip(".")).model_dump_json(
            exclude_none=True
        )
        headers = [
            *HEADERS.items(),
            ("content-type", MEDIA),
            ("content-length", str(len(body.encode()))),
            ("connection", "close"),
        ]
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=body.encode()),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _room(self) -> bool:
        """End connections that ask for nothing: first such as never did, the oldest first.

        Who only holds connections open keeps nobody from working.
        """
        idle = [
            each
            for each in self.connections
            if isinstance(each, Connection) and each is not self and not each._under_way()
        ]
        idle.sort(key=lambda each: (each._asked, each._since))
        for each in idle[:ROOM]:
            self.connections.discard(each)
            each.transport.abort()
        return bool(idle)

    def _under_way(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait_for_head(self) -> None:
        self._head = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _end_waiting(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None
