"""What a request may be at most: how large, how deeply nested, how slow."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope

from opsdrill.api.problems import Refused
from opsdrill.wire.problems import ProblemItem

BODY_BYTES = 2_000_000
"""Bytes of a body, but of an upload, which has a limit of its own."""
DEPTH = 64
"""Objects and lists that may stand in each other in JSON."""
STRANGER_BYTES = 10_000
"""Bytes of a body that may come from somebody who is not known: a login."""
BODY_SECONDS = 30.0
"""How long a body may take; an upload, each piece of it."""

_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_OTHER = re.compile(rb"[^][{}]++")
_STRUCTURE = bytes.maketrans(b"{}", b"[]")


class Body:
    """A request's body, bounded while it is received.

    Args:
        scope: of the request; its state may name, as `upload`, the bytes that an upload may have.
        receive: where the body comes from.
        admit: called before anything is read; gives the bytes that a body may have which is no
            upload, and raises for a caller who may not send one.
    """

    def __init__(self, scope: Scope, receive: Receive, admit: Callable[[], Awaitable[int]]) -> None:
        headers = Headers(scope=scope)
        self._state = scope["state"]
        self._receive = receive
        self._admit = admit
        self._length = _length(headers)
        self._there = self._length not in (None, 0) or "transfer-encoding" in headers
        self._encoding = headers.get("content-encoding", "").strip().lower()
        self._json = _is_json(headers.get("content-type", ""))
        self._most: int | None = None
        self._got = 0
        self._done = False

    async def __call__(self) -> Message:
        """The next message for the application.

        Raises:
            Refused: the body is too large, nested too deep or too slow, or nobody sent it.
        """
        if not self._there or self._done:
            return await self._receive()
        if self._most is None:
            self._most = await self._admit()
        upload: int | None = self._state.get("upload")
        most = self._most if upload is None else upload
        if (self._length or 0) > most:
            raise _large(most)  # before any of it has come
        if self._encoding not in ("", "identity"):
            raise Refused(415, "a compressed body is not understood", hint="send it as it is")
        if upload is not None:
            return await self._piece(upload)
        try:
            async with asyncio.timeout(BODY_SECONDS):
                return await self._whole(self._most)
        except TimeoutError:
            raise _slow() from None

    async def _piece(self, most: int) -> Message:
        try:
            async with asyncio.timeout(BODY_SECONDS):
                message = await self._receive()
        except TimeoutError:
            raise _slow() from None
        self._count(message, most)
        return message

    async def _whole(self, most: int) -> Message:
        pieces: list[bytes] = []
        while not self._done:
            message = await self._receive()
            if message["type"] != "http.request":
                return message
            self._count(message, most)
            pieces.append(message.get("body", b""))
        body = b"".join(pieces)
        if self._json:
            _check_json(body)
        return {"type": "http.request", "body": body, "more_body": False}

    def _count(self, message: Message, most: int) -> None:
        self._got += len(message.get("body", b""))
        if self._got > most:
            raise _large(most)
        self._done = not message.get("more_body", False)


def too_deep(body: bytes) -> bool:
    """Whether JSON nests deeper than `DEPTH`; what is no JSON at all is for a parser to say.

    Every step is one pass in C, and there are at most `DEPTH` of them.
    """
    if body.count(b"[") + body.count(b"{") <= DEPTH:
        return False
    rest = _OTHER.sub(b"", _TEXT.sub(b"", body)).translate(_STRUCTURE)
    for _ in range(DEPTH):
        if b"[]" not in rest:
            break
        rest = rest.replace(b"[]", b"")
    return b"[]" in rest or rest.count(b"[") > DEPTH


def _check_json(body: bytes) -> None:
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise Refused(
            422,
            f"the body is not UTF-8: byte {error.start} cannot be",
            errors=[ProblemItem(path="", message="is not UTF-8")],
        ) from None
    if too_deep(body):
        raise Refused(
            422,
            f"the body is nested too deep; at most {DEPTH} objects and lists in each other",
            errors=[ProblemItem(path="", message="is nested too deep")],
        )


def _length(headers: Headers) -> int | None:
    text = headers.get("content-length", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def _large(most: int) -> Refused:
    return Refused(413, f"the body is too large; at most {most} bytes")


def _slow() -> Refused:
    return Refused(408, f"the body did not come within {BODY_SECONDS:.0f} seconds")
