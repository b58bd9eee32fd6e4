"""One call of the API, described: what is sent, and how the answer is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Generic, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ValidationError

from opsdrill.client.refusals import Unreachable
from opsdrill.client.uploads import Upload
from opsdrill.errors import UsageError
from opsdrill.model.problem import from_validation

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

Value = str | int | float | bool | datetime | Sequence[str] | None
API = "/api/v1"
SECONDS = 30.0
LONG_SECONDS = 300.0
"""For what answers when hosts are given back, or a large file was worked through."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that was hoped for."""

    response: httpx.Response
    content: bytes


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """What is asked of the server.

    Args:
        method: of HTTP.
        path: quoted already.
        read: makes of the answer what the caller gets.
        query: parameters; None is left out, a list is repeated.
        headers: further ones.
        body: what is sent.
        again: sent twice it does no more than sent once, so that it may be tried again.
        seconds: how long the server may think.
    """

    method: str
    path: str
    read: Callable[[Answer], T]
    query: Mapping[str, Value] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Upload | None = None
    again: bool = False
    seconds: float = SECONDS

    def behind(self, cursor: str) -> Call[T]:
        """The same for the page behind a cursor."""
        return replace(self, query={**self.query, "cursor": cursor})

    def parameters(self) -> httpx.QueryParams:
        """The query as it is sent. Raises UsageError."""
        found: list[tuple[str, str | int | float | bool | None]] = []
        for name, value in self.query.items():
            if value is None:
                continue
            several = value if isinstance(value, (list, tuple)) else [value]
            found += [(name, _written(each)) for each in several]
        return httpx.QueryParams(found)


def model(kind: type[M]) -> Callable[[Answer], M]:
    """Reads an answer as a model."""

    def read(answer: Answer) -> M:
        try:
            return kind.model_validate_json(answer.content)
        except ValidationError as error:
            raise Unreachable(
                f"the answer is no {kind.__name__} that this version understands: "
                f"{error.error_count()} things are otherwise"
            ) from None

    return read


def nothing(_answer: Answer) -> None:
    """For an answer without a body."""


def content(answer: Answer) -> bytes:
    """Reads an answer as bytes."""
    return answer.content


def text(answer: Answer) -> str:
    """Reads an answer as text."""
    return answer.content.decode("utf-8", "replace")


def get(path: str, read: Callable[[Answer], T], **query: Value) -> Call[T]:
    """What only reads, and may be tried again."""
    return Call("GET", path, read, query, again=True)


def of_model(body: BaseModel) -> Upload:
    """A body of JSON; what was not said is left to the server."""
    written = body.model_dump_json(by_alias=True, exclude_unset=True)
    return Upload(written.encode(), "application/json")


def asked(kind: type[M], values: Mapping[str, object]) -> M:
    """What a caller asks for. Raises UsageError where it cannot be; None is what was not said."""
    try:
        return kind.model_validate({k: v for k, v in values.items() if v is not None})
    except ValidationError as error:
        (_, first), *_ = from_validation(error)
        raise UsageError(str(first)) from None


def address(template: str, *parts: str | int) -> str:
    """A path below the API with its `{}` filled, each by one segment. Raises UsageError."""
    return API + template.format(*(_segment(str(part)) for part in parts))


def several(path: str) -> str:
    """The segments of a path inside something, quoted. Raises UsageError."""
    return "/".join(_segment(part) for part in path.split("/"))


def _segment(part: str) -> str:
    if part in ("", ".", ".."):
        raise UsageError(f"{part!r} names nothing", hint="give an id, a key or a path")
    try:
        return quote(part, safe="")
    except UnicodeEncodeError:
        raise UsageError(f"{part!r} is no text") from None


def _written(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat()
    text = str(value)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise UsageError(f"{text!r} is no text") from None
    return text
