"""Where the server is, who calls, and how often something is tried."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TypeVar

import httpx

from opsdrill.client.call import Call
from opsdrill.client.refusals import ApiError, Unreachable, refusal
from opsdrill.client.streams import QUIET_SECONDS
from opsdrill.errors import UsageError

T = TypeVar("T")

URL, TOKEN = "OPSDRILL_URL", "OPSDRILL_TOKEN"
CONNECT_SECONDS = 10.0
TRIES = 3
"""How often a call is sent that may be sent again."""
PATIENCE = 15.0
"""The longest `Retry-After` that is waited for."""

_TOKEN = re.compile(r"[\x21-\x7e]{1,200}")


@dataclass(frozen=True, slots=True)
class Reach:
    """A server, and what it is told about the caller."""

    url: str
    headers: dict[str, str]

    @classmethod
    def of(cls, url: str | None, token: str | None) -> Reach:
        """From arguments, or from `OPSDRILL_URL` and `OPSDRILL_TOKEN`. Raises UsageError."""
        url = url if url is not None else os.environ.get(URL)
        token = token if token is not None else os.environ.get(TOKEN)
        if not url:
            raise UsageError("no server is named", hint=f"give its address, or set {URL}")
        try:
            parsed = httpx.URL(url)
        except httpx.InvalidURL:
            parsed = httpx.URL("")
        if parsed.scheme not in ("http", "https") or not parsed.host or parsed.userinfo:
            raise UsageError(
                "the server's address is none",
                hint="give it as http://HOST:PORT, the token apart from it",
            )
        headers = {"user-agent": "opsdrill-client"}
        if token:
            if not _TOKEN.fullmatch(token):
                raise UsageError("the token is none", hint="it is one word, such as od_...")
            headers["authorization"] = f"Bearer {token}"
        return cls(url.rstrip("/"), headers)


def sent(call: Call[T]) -> dict[str, str]:
    """The headers of a call."""
    if call.body is None:
        return dict(call.headers)
    # A length that is known is said, so that one too large is refused before it is sent.
    size = str(call.body.size())
    return {**call.headers, "content-type": call.body.media, "content-length": size}


def timeout(seconds: float) -> httpx.Timeout:
    return httpx.Timeout(CONNECT_SECONDS, read=seconds, write=seconds)


STREAM = httpx.Timeout(CONNECT_SECONDS, read=QUIET_SECONDS, pool=None)


def wait(call: Call[T], tried: int, answer: httpx.Response) -> float | None:
    """Seconds after which an answer that is a refusal is asked for again; None: it stands."""
    after = answer.headers.get("retry-after", "")
    if tried >= TRIES or not after.isascii() or not after.isdigit() or len(after) > 4:
        return None
    passing = answer.status_code == 429 or (call.again and answer.status_code in (409, 503))
    seconds = float(after)
    return seconds if passing and seconds <= PATIENCE else None


def lost(call: Call[T], tried: int, error: httpx.TransportError) -> float:
    """Seconds after which a call that got no answer is sent again. Raises Unreachable."""
    unsent = isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout))
    if tried < TRIES and (call.again or unsent):
        return 0.5 * tried
    raise Unreachable(f"no answer came: {why(error)}") from None


def why(error: httpx.TransportError) -> str:
    return str(error)[:200] or type(error).__name__


def stream_refusal(answer: httpx.Response, content: bytes) -> ApiError | None:
    """Why nothing can be followed; None where that passes, or nothing is left to be told."""
    if answer.status_code in (200, 204):
        return None
    error = refusal(answer, content)
    return None if answer.status_code in (429, 502, 503, 504) else error
