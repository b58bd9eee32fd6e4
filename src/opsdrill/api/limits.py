"""What a request may be at most: how large, how deeply nested, how slow."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

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
UPLOAD_RATE = 16_384
"""Bytes that each second of waiting for an upload must bring, after the first `BODY_SECONDS`."""

_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_OTHER = re.compile(rb"[^][{}]++")
_STRUCTURE = bytes.maketrans(b"{}", b"[]")


class Waiting:
    """Bodies that have not come whole yet. Past a number of them the one that is waited for longest
    gives way, so that nobody is kept out by bodies that do not come.

    Args:
        most: how many.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._limits: dict[asyncio.Timeout, None] = {}

    @contextmanager
    def one(self, limit: asyncio.Timeout) -> Iterator[None]:
        """One that is waited for within a time limit, which giving way puts to now."""
        if len(self._limits) >= self._most:
            oldest = next(iter(self._limits))
            del self._limits[oldest]
            oldest.reschedule(asyncio.get_running_loop().time())
        self._limits[limit] = None
        try:
            yield
        finally:
            self._limits.pop(limit, None)


@dataclass(frozen=True, slots=True)
class Admitted:
    """What somebody may send.

    Args:
        most: bytes of a body that is no upload.
        waiting: where it waits with others, until it is there.
    """

    most: int
    waiting: Waiting


class Body:
    """A request's body, bounded while it is received.

    Args:
        scope: of the request; its state may name, as `upload`, the bytes that an upload may have.
        receive: where the body comes from.
        admit: called before anything is read; raises for a caller who may not send a body.
    """

    def __init__(
        self, scope: Scope, receive: Receive, admit: Callable[[], Awaitable[Admitted]]
    ) -> None:
        headers = Headers(scope=scope)
        self._state = scope["state"]
        self._receive = receive
        self._admit = admit
        self._length = _length(headers)
        self._there = self._length not in (None, 0) or "transfer-encoding" in headers
        self._encoding = headers.get("content-encoding", "").strip().lower()
        self._json = _is_json(headers.get("content-type", ""))
        self._admitted: Admitted | None = None
        self._got = 0
        self._waited = 0.0
        self._done = False

    async def __call__(self) -> Message:
        """The next message for the application.

        Raises:
            Refused: the body is too large, nested too deep or too slow, or nobody sent it.
        """
        if not self._there or self._done:
            return await self._receive()
        if self._admitted is None:
            self._admitted = await self._admit()
        upload: int | None = self._state.get("upload")
        most = self._admitted.most if upload is None else upload
        if (self._length or 0) > most:
            raise _large(most)  # before any of it has come
        if self._encoding not in ("", "identity"):
            raise Refused(415, "a compressed body is not understood", hint="send it as it is")
        if upload is not None:
            return await self._piece(upload)
        try:
            async with asyncio.timeout(BODY_SECONDS) as limit:
                with self._admitted.waiting.one(limit):
                    return await self._whole(most)
        except TimeoutError:
            raise Refused(
                408,
                "the body did not come in time",
                hint=f"it may take {BODY_SECONDS:.0f} seconds, and less while many do not come",
            ) from None

    async def _piece(self, most: int) -> Message:
        clock = asyncio.get_running_loop().time
        begun = clock()
        left = BODY_SECONDS + self._got / UPLOAD_RATE - self._waited
        try:
            async with asyncio.timeout(min(BODY_SECONDS, left)):
                message = await self._receive()
        except TimeoutError:
            raise Refused(
                408,
                "the upload comes too slowly",
                hint=f"{BODY_SECONDS:.0f} seconds without a byte are too many, and after the first"
                f" {BODY_SECONDS:.0f} so are less than {UPLOAD_RATE} bytes a second",
            ) from None
        self._waited += clock() - begun
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
