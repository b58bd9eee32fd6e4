"""Where a service may post its events: a small server of one path, for one job.

A request is taken when it is signed, fresh, and of the next events; it is bounded in size and time,
and so is the number of connections. An event that was taken already is passed over, so a service
may post again whatever it is not sure of.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from opsdrill.agents.http.client import ProtocolBroken, read_callback
from opsdrill.agents.http.protocol import BODY_LIMIT, CallBack
from opsdrill.agents.http.signing import refusal
from opsdrill.errors import AgentUnavailable

HEAD_LIMIT = 16 * 1024
REQUEST_SECONDS = 30.0
CONNECTIONS = 32
DROPPED = 8 * BODY_LIMIT
"""Bytes of a body that is too long which are read, so that its sender gets to read the answer."""

Take = Callable[[CallBack], Awaitable[int]]
"""Takes a call-back and gives the number of the next event; raises ProtocolBroken."""


@dataclass(frozen=True, slots=True)
class _Posted:
    """A request for the right address: its header fields and its body."""

    fields: dict[str, str]
    body: bytes


class CallBacks:
    """Listens for call-backs. Use it as a context.

    Args:
        address: where to listen, `ADDRESS:PORT`; port 0 takes a free one.
        key: the shared secret.
        take: takes the events.
        now: seconds since 1970.

    Attributes:
        url: what the service is told to post to.
    """

    def __init__(
        self, address: str, key: bytes, take: Take, now: Callable[[], float] = time.time
    ) -> None:
        self._host, _, port = address.rpartition(":")
        self._port = int(port)
        self._key = key
        self._take = take
        self._now = now
        self._path = f"/{secrets.token_urlsafe(16)}"
        self._server: asyncio.Server | None = None
        self._talks: set[asyncio.Task[None]] = set()
        self._one = asyncio.Lock()
        self.url = ""

    async def __aenter__(self) -> CallBacks:
        host = self._host.strip("[]")
        try:
            self._server = await asyncio.start_server(
                self._talk, host, self._port, limit=HEAD_LIMIT
            )
        except OSError as error:
            raise AgentUnavailable(
                f"call-backs cannot be listened for at {self._host}:{self._port}: "
                f"{error.strerror or error}",
                hint="change `callback` in the agents file",
            ) from error
        self.url = f"http://{self._host}:{self._server.sockets[0].getsockname()[1]}{self._path}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.current_task()
        assert talk is not None
        if len(self._talks) >= CONNECTIONS:
            writer.close()
            return
        self._talks.add(talk)
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                asked = await self._read(reader)
            # How long events take is for the commands to say that they wait for.
            status, text = await self._judged(asked) if isinstance(asked, _Posted) else asked
            body = text.encode()
            head = (
                f"HTTP/1.1 {status} .\r\ncontent-type: text/plain; charset=utf-8\r\n"
                f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            )
            async with asyncio.timeout(REQUEST_SECONDS):
                writer.write(head.encode() + body)
                await writer.drain()
        except (TimeoutError, OSError):
            pass  # whoever is too slow, or gone, is told nothing
        finally:
            self._talks.discard(talk)
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> tuple[int, str] | _Posted:
        """A request, or what is said at once to one that is none: a status and a line."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.LimitOverrunError, asyncio.IncompleteReadError):
            return 400, "that is no request"
        line, *lines = head.decode("latin-1").split("\r\n")
        fields = {
            name.strip().lower(): value.strip()
            for name, _, value in (text.partition(":") for text in lines)
        }
        method, _, rest = line.partition(" ")
        if not hmac.compare_digest(rest.partition(" ")[0].encode(), self._path.encode()):
            return 404, "there is nothing here"
        if method != "POST":
            return 405, "events are posted"
        length = fields.get("content-length", "")
        if not (length.isascii() and length.isdigit() and len(length) < 12):
            return 411, "a request needs its content-length"
        if int(length) > BODY_LIMIT:
            await _dropped(reader, min(int(length), DROPPED))
            return 413, f"a body may have {BODY_LIMIT} bytes"
        try:
            return _Posted(fields, await reader.readexactly(int(length)))
        except asyncio.IncompleteReadError:
            return 400, "the body ends too soon"

    async def _judged(self, asked: _Posted) -> tuple[int, str]:
        why = refusal(self._key, asked.fields, asked.body, self._now())
        if why is not None:
            return 401, why
        try:
            posted = read_callback(asked.body)
        except ProtocolBroken as error:
            return 422, str(error)
        async with self._one:
            try:
                return 200, str(await self._take(posted))
            except ProtocolBroken as error:
                return 409, str(error)


async def _dropped(reader: asyncio.StreamReader, length: int) -> None:
    while length > 0 and (part := await reader.read(min(length, 64 * 1024))):
        length -= len(part)
