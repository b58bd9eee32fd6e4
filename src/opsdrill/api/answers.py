"""Answers whose texts may be anything, and the tags that editors give back."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated, Any, ParamSpec, TypeVar

from anyio import CapacityLimiter
from fastapi import Depends, Header, Request, Response
from pydantic import BaseModel

from opsdrill.api.problems import Refused
from opsdrill.api.service import Service, once
from opsdrill.app import documents
from opsdrill.app.editing import Expected, NotEditable
from opsdrill.app.uploads import Upload

P = ParamSpec("P")
T = TypeVar("T")

_TAG = re.compile(r'\s*(W/)?("[\x21\x23-\x7e]{0,200}")\s*(?:,|$)')
_TAGS = 20
UPLOADS, OWN_UPLOADS = 16, 8
"""Files that come in, or are looked at, at once: of all callers, and of one."""
_LATER = {"Retry-After": "10"}


def told(
    body: BaseModel, status: int = 200, *, headers: Mapping[str, str] | None = None
) -> Response:
    """A body as JSON, also where a text of it holds half a surrogate pair."""
    content = documents.of_model(body, indented=False)
    return Response(content, status, headers=dict(headers or {}), media_type="application/json")


def _maybe_expected(
    if_match: Annotated[
        str | None, Header(description="The ETag of the version that is edited, or `*`.")
    ] = None,
) -> Expected | None:
    if if_match is None:
        return None
    if if_match.strip() == "*":
        return Expected()
    return Expected(tuple(tag for weak, tag in _tags(if_match) if not weak))


MaybeExpected = Annotated[Expected | None, Depends(_maybe_expected)]
"""What an editor saw, where the request says it."""


def _expected(given: MaybeExpected) -> Expected:
    if given is None:
        raise Refused(
            428,
            "say which version you edit",
            hint="send the ETag that you read as If-Match (or `*` for any)",
        )
    return given


Seen = Annotated[Expected, Depends(_expected)]
"""What an editor saw, which an edit must say (428)."""


def _known_tags(
    if_none_match: Annotated[
        str | None, Header(description="ETags that the caller has: 304 where one still holds.")
    ] = None,
) -> frozenset[str]:
    if if_none_match is None:
        return frozenset()
    if if_none_match.strip() == "*":
        return frozenset("*")
    return frozenset(tag for _, tag in _tags(if_none_match, strict=False))


Has = Annotated[frozenset[str], Depends(_known_tags)]
"""The ETags of what the caller has."""


def unchanged(has: frozenset[str], etag: str) -> Response | None:
    """The answer to a caller who has this already."""
    if has & {etag, "*"}:
        return Response(status_code=304, headers={"ETag": etag})
    return None


def _tags(header: str, *, strict: bool = True) -> list[tuple[bool, str]]:
    found: list[tuple[bool, str]] = []
    at = 0
    while (at < len(header) or not found) and len(found) < _TAGS:
        tag = _TAG.match(header, at)
        if tag is None:
            if strict:
                raise Refused(400, "If-Match holds no ETag", hint='an ETag is a text like "3-9f86"')
            return []
        found.append((tag[1] is not None, tag[2]))
        at = tag.end()
    return found


@contextmanager
def editing() -> Iterator[None]:
    """What cannot be edited at all is no matter of the version that was seen.

    Raises:
        Refused: 409.
    """
    try:
        yield
    except NotEditable as error:
        raise Refused(409, error.message, hint=error.hint) from None


async def edited(service: Service, edit: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call an edit. Raises as `editing`."""
    with editing():
        return await service.call(edit, *args, **kwargs)


@contextmanager
def _counted(own: Counter[str], caller: str) -> Iterator[None]:
    """One more upload of a caller, as long as the context lasts. Raises Refused."""
    if own[caller] >= OWN_UPLOADS:
        raise Refused(429, f"you send {OWN_UPLOADS} uploads at once; try again", headers=_LATER)
    own[caller] += 1
    try:
        yield
    finally:
        own[caller] -= 1
        if not own[caller]:
            del own[caller]


@asynccontextmanager
async def received(request: Request, service: Service) -> AsyncIterator[Upload]:
    """The body of a request as a file, which is gone afterwards.

    Raises:
        Refused: too many come in already.
    """
    known = once(request, "uploads", lambda: CapacityLimiter(UPLOADS))
    own: Counter[str] = once(request, "own_uploads", Counter)
    if known.available_tokens < 1:
        raise Refused(503, "too many uploads at once; try again", headers=_LATER)
    with _counted(own, request.state.caller.token):
        async with known:
            upload = await service.call(Upload, service.place)
            try:
                async for piece in request.stream():
                    if piece:
                        await service.call(upload.write, piece)
                await service.call(upload.end)
                yield upload
            finally:
                upload.discard()


def with_body(
    declared: dict[str, Any],
    *contents: str,
    description: str,
    example: object = None,
    schema: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What `entry.needs` gives, for a route that reads its body itself.

    Args:
        declared: what `needs` gave.
        contents: the media types that the body may have; JSON is an object.
        description: what the body is.
        example: of a JSON body.
        schema: of a JSON body.
    """
    shapes: dict[str, Any] = {}
    for content in contents:
        if content.endswith("json"):
            shapes[content] = {"schema": dict(schema or {"type": "object"})}
            if example is not None:
                shapes[content]["example"] = example
        elif content.startswith("application/") and not content.endswith("yaml"):
            shapes[content] = {"schema": {"type": "string", "format": "binary"}}
        else:
            shapes[content] = {"schema": {"type": "string"}}
    body = {"required": True, "description": description, "content": shapes}
    return {**declared, "openapi_extra": {**declared["openapi_extra"], "requestBody": body}}
