"""What stands before every route: whom a request is meant for, where it comes from, what it leaves.

It refuses what no route may get, bounds the body, puts the headers on every answer that keep a
browser from making anything else of it, and writes one line into the log.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import MutableMapping
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from opsdrill.api import problems
from opsdrill.api.entry import OPEN, SAFE, check_role, known, role_of
from opsdrill.api.limits import BODY_BYTES, STRANGER_BYTES, Admitted, Body, Waiting
from opsdrill.api.metrics import Metrics
from opsdrill.api.problems import Carried, Refused
from opsdrill.api.service import Service

AT_ONCE = 1000
"""Requests that are worked on at once, beside those that follow events."""
BODIES, STRANGERS = 500, 100
"""Bodies that are waited for at once, of those who are known and of those who are not."""
HEAD_BYTES = 32_768
"""Bytes of a request's line and headers, however they came."""
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""On every answer, unless a route has a better word for one of them."""
LOGGED = 200
"""Characters of a path that the log shows."""

log = logging.getLogger(__name__)


class Guard:
    """The outermost part of the application (ASGI).

    Args:
        app: what is behind it.
        service: of the process.
        metrics: told every answer.
    """

    def __init__(self, app: ASGIApp, service: Service, metrics: Metrics) -> None:
        self._app = app
        self._service = service
        self._metrics = metrics
        self._under_way = 0
        self._bodies, self._strangers = Waiting(BODIES), Waiting(STRANGERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        scope.setdefault("state", {})
        connection = HTTPConnection(scope)
        answer = _Answer(send, problems.request_id(connection))
        self._under_way += 1
        try:
            await self._answered(connection, receive, answer)
        finally:
            self._under_way -= 1
            seconds = time.perf_counter() - started
            self._metrics.answered(scope, answer.status, seconds)
            _log(connection, answer.status, seconds)

    async def _answered(
        self, connection: HTTPConnection, receive: Receive, answer: _Answer
    ) -> None:
        scope = connection.scope

        async def admit() -> Admitted:
            if (scope["method"], scope["path"]) in OPEN:
                return Admitted(STRANGER_BYTES, self._strangers)
            try:
                who = await known(connection, self._service)
                check_role(who, role_of(scope))
            except Refused:
                raise
            except Exception as error:
                raise Carried(error) from error
            return Admitted(BODY_BYTES, self._bodies)

        try:
            self._check(connection)
            await self._app(scope, Body(scope, receive, admit), answer)
        except Refused as refused:
            await problems.refusal(connection, refused)(scope, receive, answer)
        except ClientDisconnect:
            log.debug("request %s was given up", problems.request_id(connection))
        except Exception as error:
            if answer.status is not None:
                raise  # half an answer is out: the server ends the connection
            await problems.unforeseen(connection, error)(scope, receive, answer)

    def _check(self, connection: HTTPConnection) -> None:
        """Refuse what no route may get. Raises Refused."""
        if self._under_way - self._service.engine.followers.count > AT_ONCE:
            raise Refused(503, "too many requests at once; try again", headers={"Retry-After": "1"})
        if _head_bytes(connection.scope) > HEAD_BYTES:
            raise Refused(400, f"the head of a request has at most {HEAD_BYTES} bytes")
        if {"content-length", "transfer-encoding"} <= set(connection.headers):
            # Somebody before us may have seen another end of it than we do.
            raise Refused(
                400,
                "a body has a length or comes in pieces, not both",
                headers={"Connection": "close"},
            )
        host = _host(connection)
        if host not in self._service.hosts:
            raise Refused(
                421,
                f"this server is not called {host[:LOGGED]!r}",
                hint="`opsdrill serve --host-name NAME` names it",
            )
        if connection.scope["method"] not in SAFE:
            _check_origin(connection)


class _Answer:
    """Sends an answer with the headers that every answer has; remembers its status."""

    def __init__(self, send: Send, id: str) -> None:
        self._send = send
        self._id = id
        self.status: int | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=_with_headers(message))
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            headers["x-request-id"] = self._id
        await self._send(message)
        if message.get("more_body"):
            # To who is gone, sending waits for nothing: let it be noticed that they are.
            await asyncio.sleep(0)


def _with_headers(message: Message) -> MutableMapping[str, Any]:
    message.setdefault("headers", [])
    return message


def _head_bytes(scope: Scope) -> int:
    line = len(scope.get("raw_path") or scope["path"]) + len(scope["query_string"])
    return line + sum(len(name) + len(value) + 4 for name, value in scope["headers"])


def _host(connection: HTTPConnection) -> str:
    """The name that the request calls us by, without its port. Raises Refused."""
    given = connection.headers.getlist("host")
    if len(given) != 1 or not given[0]:
        raise Refused(400, "a request must name one host")
    name, _, port = given[0].lower().rpartition(":")
    if not name or not port.isdigit():
        name = given[0].lower()
    return name.rstrip(".")


def _check_origin(connection: HTTPConnection) -> None:
    """Refuse a change that a browser sends for another site. Raises Refused."""
    site = connection.headers.get("sec-fetch-site", "same-origin")
    origin = connection.headers.get("origin")
    if site not in ("same-origin", "none") or (origin is not None and not _ours(connection)):
        raise Refused(403, "a change may come from pages of this server only, not of another site")


def _ours(connection: HTTPConnection) -> bool:
    try:
        origin = urlsplit(connection.headers["origin"])
        port = origin.port
    except ValueError:
        return False
    if origin.scheme not in ("http", "https") or origin.hostname is None:
        return False
    usual = {"http": 80, "https": 443}[origin.scheme]
    name = f"[{origin.hostname}]" if ":" in origin.hostname else origin.hostname
    ours = connection.headers["host"].lower()
    return ours == f"{name}:{port or usual}" or (ours == name and port in (None, usual))


def _log(connection: HTTPConnection, status: int | None, seconds: float) -> None:
    """One line; a path as it was sent has no control characters, and its query is left out."""
    scope = connection.scope
    path = scope.get("raw_path") or scope["path"].encode("ascii", "backslashreplace")
    client = connection.client.host if connection.client else "-"
    who = getattr(connection.state, "caller", None)
    log.info(
        "%s %s %s %s %s %s %.0f ms",
        problems.request_id(connection),
        _plain(client),
        who.token if who else "-",
        _plain(scope["method"]),
        _plain(path.decode("latin-1")),
        status or "given up",
        seconds * 1000,
    )


def _plain(text: str) -> str:
    kept = text[:LOGGED].encode("ascii", "backslashreplace").decode()
    return "".join(char if char.isprintable() and char != " " else "?" for char in kept)
