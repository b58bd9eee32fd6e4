"""Requests to the service: bounded in time and size, tried again, signed where there is a key.

Only the address that the operator gave is ever asked, below it, and no redirect is followed: what
a service answers cannot send OpsDrill anywhere else.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from opsdrill.agents.http.protocol import (
    BODY_LIMIT,
    CallBack,
    Events,
    Greeting,
    JobOrder,
    Result,
)
from opsdrill.agents.http.signing import signed
from opsdrill.model.problem import from_validation

M = TypeVar("M", bound=BaseModel)

REQUEST_SECONDS = 30.0
POLL_SECONDS = 20
"""How long the service is asked to wait for an event before it answers with none."""
WAITS = (0.5, 2.0, 5.0)
"""Seconds before each further try."""
LONGEST_WAIT = 30.0
_PASSING = (408, 425, 429, 500, 502, 503, 504)


class ServiceSilent(Exception):
    """The service did not answer, in as many tries as there are."""


class ServiceRefused(Exception):
    """The service answered with a status that another try does not change."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(f"status {status}{f': {said}' if said else ''}")
        self.status = status


class ProtocolBroken(Exception):
    """The service sent what the protocol does not allow."""


class Service:
    """One service, asked by one run. Use it as a context.

    Args:
        url: its address, without a slash at the end.
        token: sent as a bearer token.
        key: signs every request.
        waits: seconds before each further try.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        key: bytes | None = None,
        waits: Sequence[float] = WAITS,
    ) -> None:
        self._url = url
        self._key = key
        self._waits = waits
        headers = {"accept": "application/json"}
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        self._http = httpx.AsyncClient(
            headers=headers,
            timeout=httpx.Timeout(REQUEST_SECONDS, connect=10.0),
            follow_redirects=False,
            trust_env=False,
        )

    async def __aenter__(self) -> Service:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def greet(self) -> Greeting:
        """What the service says of itself. All methods raise as `_asked`."""
        return _read(Greeting, await self._asked("GET", ""))

    async def start(self, order: JobOrder) -> None:
        """Start a job."""
        await self._asked("POST", "/jobs", order)

    async def events(self, job: str, after: int) -> Events:
        """The events from number `after` on."""
        path = f"/jobs/{job}/events?after={after}&wait={POLL_SECONDS}"
        return _read(Events, await self._asked("GET", path))

    async def result(self, job: str, result: Result) -> None:
        """Tell the service what became of a command."""
        await self._asked("POST", f"/jobs/{job}/results", result)

    async def cancel(self, job: str) -> None:
        """Tell the service that the job is over; asked once, whatever it answers."""
        try:
            async with asyncio.timeout(5.0):
                await self._once("DELETE", f"/jobs/{job}", b"")
        except (httpx.HTTPError, TimeoutError, ProtocolBroken):
            return

    async def _asked(self, method: str, path: str, body: BaseModel | None = None) -> bytes:
        """The body of a good answer.

        Raises:
            ServiceSilent: no answer, or none but refusals that may pass, in all tries.
            ServiceRefused: a refusal that does not pass, or a redirect.
            ProtocolBroken: an answer that is too long, or not in the protocol.
        """
        content = b"" if body is None else body.model_dump_json(exclude_none=True).encode()
        left = list(self._waits)
        while True:
            wish = 0.0
            try:
                answer, read = await self._once(method, path, content)
            except httpx.HTTPError as error:
                said = f"{type(error).__name__}: {error}".rstrip(": ")
            else:
                if answer.is_success:
                    return read
                said = f"status {answer.status_code}"
                if answer.status_code not in _PASSING:
                    words = " ".join(read[:600].decode(errors="replace").split())[:300]
                    raise ServiceRefused(answer.status_code, words)
                wish = _seconds(answer.headers.get("retry-after", ""))
            if not left:
                raise ServiceSilent(f"{said}, in {len(self._waits) + 1} tries")
            await asyncio.sleep(min(max(left.pop(0), wish), LONGEST_WAIT))

    async def _once(self, method: str, path: str, content: bytes) -> tuple[httpx.Response, bytes]:
        headers = {"content-type": "application/json"} if content else {}
        if self._key is not None:
            headers |= signed(self._key, int(time.time()), content)
        url = f"{self._url}{path}"
        async with self._http.stream(method, url, content=content, headers=headers) as answer:
            parts = bytearray()
            async for part in answer.aiter_bytes(64 * 1024):
                parts += part
                if len(parts) > BODY_LIMIT:
                    raise ProtocolBroken(f"an answer has more than {BODY_LIMIT} bytes")
            return answer, bytes(parts)


def _seconds(text: str) -> float:
    return float(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0.0


def _read(model: type[M], content: bytes) -> M:
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        raise ProtocolBroken(said_of(error)) from error


def read_callback(content: bytes) -> CallBack:
    """The events that a service posted.

    Raises:
        ProtocolBroken: that is no call-back.
    """
    return _read(CallBack, content)


def said_of(error: ValidationError) -> str:
    """The first mistake in a document, in one bounded line."""
    first = next((str(problem) for _, problem in from_validation(error)), "it is no JSON")
    return " ".join(first.split())[:300]
