"""Every error that a caller can get, as problem details (RFC 9457); made here and nowhere else."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from opsdrill.errors import (
    AgentUnavailable,
    Conflict,
    DriverUnavailable,
    InvalidInput,
    NotThere,
    OpsDrillError,
    Problem,
    StoreError,
    UnknownName,
    UsageError,
)
from opsdrill.model.problem import dotted
from opsdrill.wire.problems import ProblemDetails, ProblemItem

MEDIA = "application/problem+json"

log = logging.getLogger(__name__)

_TITLES: Mapping[int, tuple[str, str]] = {
    400: ("bad-request", "Bad request"),
    401: ("unauthenticated", "Who are you?"),
    403: ("forbidden", "Not allowed"),
    404: ("not-found", "Not found"),
    405: ("method-not-allowed", "Method not allowed"),
    406: ("not-acceptable", "Not acceptable"),
    408: ("timeout", "Too slow"),
    409: ("conflict", "Conflict"),
    412: ("precondition-failed", "Changed meanwhile"),
    413: ("too-large", "Too large"),
    415: ("unsupported-media-type", "Unsupported media type"),
    421: ("misdirected", "Wrong host"),
    422: ("invalid-input", "Invalid input"),
    428: ("precondition-required", "Say which version you edit"),
    429: ("too-many-requests", "Too many requests"),
    500: ("internal", "Our fault"),
    503: ("unavailable", "Not available"),
}
_STATUS: Sequence[tuple[type[OpsDrillError], int]] = (
    (Conflict, 409),
    (NotThere, 404),
    (UnknownName, 422),
    (UsageError, 400),
    (InvalidInput, 422),
    (DriverUnavailable, 503),
    (AgentUnavailable, 503),
    (StoreError, 503),
)
"""The first that fits counts."""


class Refused(Exception):
    """A request that is refused by the API itself, for a reason that no use case knows.

    Args:
        status: of HTTP.
        detail: one sentence: where, what, and what to do.
        headers: more headers of the answer.
        errors: what is wrong with what was sent.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        hint: str | None = None,
        headers: Mapping[str, str] | None = None,
        errors: Sequence[ProblemItem] = (),
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.hint = status, detail, hint
        self.headers = dict(headers or {})
        self.errors = tuple(errors)


def answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error answers of an operation, for the OpenAPI document."""
    shape = {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}
    return {
        status: {"description": _TITLES[status][1], "content": {MEDIA: shape}}
        for status in sorted({*statuses, 500})
    }


def install(application: FastAPI, folders: Sequence[str]) -> None:
    """Answer every error of an application with problem details.

    Args:
        folders: folders of this machine, which no answer may name.
    """

    async def of_ours(request: Request, error: Exception) -> Response:
        assert isinstance(error, OpsDrillError)
        status = next((code for kind, code in _STATUS if isinstance(error, kind)), 500)
        if status == 500:
            return await unforeseen(request, error)
        problems = error.problems if isinstance(error, InvalidInput) else ()
        items = [item(problem, folders) for problem in problems]
        detail = without_paths(error.message, folders)
        hint = without_paths(error.hint, folders) if error.hint else None
        return answer(request, status, detail, hint=hint, errors=items)

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, Refused)
        return answer(
            request,
            error.status,
            error.detail,
            hint=error.hint,
            headers=error.headers,
            errors=error.errors,
        )

    async def of_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        what = f"{request.method} {request.url.path}"
        detail = {404: f"there is no {request.url.path}", 405: f"{what} is not possible"}.get(
            error.status_code, str(error.detail)
        )
        return answer(request, error.status_code, detail, headers=error.headers)

    async def of_validation(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        items = [_validation_item(found) for found in error.errors()]
        first = f": {items[0].path} {items[0].message}".rstrip() if items else ""
        return answer(request, 422, f"the request is refused{first}", errors=items)

    async def unforeseen(request: Request, error: Exception) -> Response:
        log.error("request %s failed", request_id(request), exc_info=error)
        return answer(request, 500, "something went wrong here; the server's log says what")

    application.add_exception_handler(OpsDrillError, of_ours)
    application.add_exception_handler(Refused, refused)
    application.add_exception_handler(HTTPException, of_http)
    application.add_exception_handler(RequestValidationError, of_validation)
    application.add_exception_handler(Exception, unforeseen)


def answer(
    request: Request,
    status: int,
    detail: str,
    *,
    hint: str | None = None,
    headers: Mapping[str, str] | None = None,
    errors: Sequence[ProblemItem] = (),
) -> Response:
    """The answer that says why a request was not done."""
    name, title = _TITLES.get(status, ("error", "Error"))
    details = ProblemDetails(
        type=f"urn:opsdrill:problem:{name}",
        title=title,
        status=status,
        detail=printable(detail),
        hint=hint,
        instance=f"urn:opsdrill:request:{request_id(request)}",
        errors=list(errors),
    )
    body = details.model_dump(exclude_none=True)
    return JSONResponse(body, status, headers=dict(headers or {}), media_type=MEDIA)


def request_id(request: Request) -> str:
    """What the log calls this request."""
    known: str | None = getattr(request.state, "id", None)
    if known is None:
        known = request.state.id = secrets.token_hex(8)
    return known


def item(problem: Problem, folders: Sequence[str]) -> ProblemItem:
    """One finding; the file that it is in is the server's own affair."""
    return ProblemItem(
        path=problem.path,
        message=printable(without_paths(problem.message, folders)),
        severity=problem.severity,
        code=problem.code,
        line=problem.line,
        column=problem.column,
        suggestion=problem.suggestion,
    )


def without_paths(text: str, folders: Sequence[str]) -> str:
    """A sentence in which no folder of this machine is named; names in them stay."""
    for folder in sorted(folders, key=len, reverse=True):
        text = re.sub(re.escape(folder.rstrip("/")) + r"(/|\b)", "", text)
    return text


def printable(text: str) -> str:
    """A sentence that can be sent: half a surrogate pair has no bytes."""
    return text.encode("utf-8", "replace").decode()


def _validation_item(found: Mapping[str, Any]) -> ProblemItem:
    source, *rest = found["loc"]
    path = dotted([part for part in rest if not (source == "body" and part == "body")])
    message = str(found["msg"])
    if found["type"] == "json_invalid":
        message = f"is not JSON: {found.get('ctx', {}).get('error', message)}"
        path = ""
    return ProblemItem(path=path if source == "body" else f"{source}.{path}", message=message)
