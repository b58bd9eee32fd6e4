"""Every error that a caller can get, as problem details (RFC 9457); made here and nowhere else."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import iter_route_contexts
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from opsdrill.app.own_folders import folder_names, without_paths
from opsdrill.errors import (
    AgentUnavailable,
    Conflict,
    DriverUnavailable,
    InvalidInput,
    InvalidPattern,
    NotThere,
    OpsDrillError,
    Problem,
    StoreError,
    UnknownName,
    UsageError,
)
from opsdrill.model.problem import dotted, worded
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
    (InvalidPattern, 422),
    (DriverUnavailable, 503),
    (AgentUnavailable, 503),
    (StoreError, 503),
)
"""The first that fits counts."""

ErrorPage = Callable[[HTTPConnection, ProblemDetails], Response | None]
"""Shows an error to people, as `application.state.error_page`; None for who asks for no page."""

_UNREAD = "There was an error parsing the body"
"""What the framework says of a body that its reader refuses for a reason of its own."""
_SHOWN = 200
_LISTED = 100
"""Findings about one request that are told."""


class Refused(HTTPException):
    """A request that is refused by the API itself, for a reason that no use case knows.

    It is one of the web framework's, which hides any other that arises while a body is read.

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
        super().__init__(status, detail, dict(headers or {}))
        self.hint = hint
        self.errors = tuple(errors)


class Carried(HTTPException):
    """Carries an exception through the framework, which hides any that arises as a body is read."""

    def __init__(self, error: Exception) -> None:
        super().__init__(500)
        self.error = error


def answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error answers of an operation, for the OpenAPI document.

    Those that every operation has (`application.describe`) need not be named.
    """
    shape = {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}
    return {
        status: {"description": _TITLES[status][1], "content": {MEDIA: shape}}
        for status in sorted(statuses)
    }


def install(application: FastAPI, folders: Sequence[Path]) -> None:
    """Answer every error of an application with problem details.

    What is raised and is none of these, the guard answers: see `unforeseen`.

    Args:
        folders: folders of this machine, which no answer may name.
    """
    told = _Told(folder_names(folders))
    application.add_exception_handler(OpsDrillError, told.ours)
    application.add_exception_handler(Refused, told.refused)
    application.add_exception_handler(Carried, told.carried)
    application.add_exception_handler(HTTPException, told.of_http)
    application.add_exception_handler(RequestValidationError, told.of_validation)


class _Told:
    """The answers to exceptions, in which none of these folders is named."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    async def ours(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, OpsDrillError)
        status = next((code for kind, code in _STATUS if isinstance(error, kind)), 500)
        if status == 500:
            return unforeseen(request, error)
        if status == 409 and "if-match" in request.headers:
            status = 412
        if status == 503:
            log.warning("request %s: %s", request_id(request), error.message)
        found = error.problems if isinstance(error, InvalidInput) else ()
        return answer(
            request,
            status,
            without_paths(error.message, self._names),
            hint=without_paths(error.hint, self._names) if error.hint else None,
            errors=[item(problem, self._names) for problem in found],
        )

    async def refused(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, Refused)
        return refusal(request, error)

    async def carried(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, Carried)
        if isinstance(error.error, OpsDrillError):
            return await self.ours(request, error.error)
        return unforeseen(request, error.error)

    async def of_http(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if error.detail == _UNREAD:
            unread = [ProblemItem(path="", message="is JSON that cannot be read")]
            return answer(request, 422, "the body is JSON that cannot be read", errors=unread)
        path = request.url.path[:_SHOWN]
        detail = {404: f"there is no {path}", 405: f"{request.method} {path} is not possible"}.get(
            error.status_code, str(error.detail)
        )
        headers = dict(error.headers or {})
        if error.status_code == 405:
            headers["Allow"] = ", ".join(_methods(request))
        return answer(request, error.status_code, detail, headers=headers)

    async def of_validation(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        items = [_validation_item(found) for found in error.errors()[:_LISTED]]
        first = f": {items[0].path or 'the body'} {items[0].message}" if items else ""
        return answer(request, 422, f"the request is refused{first}", errors=items)


def _methods(request: Request) -> Sequence[str]:
    """What can be done to an address, over all routes that have it."""
    found: set[str] = set()
    for route in iter_route_contexts(request.app.routes):
        if route.path_regex.match(request.scope["path"]):
            found |= route.methods or set()
    return sorted(found)


def refusal(request: HTTPConnection, refused: Refused) -> Response:
    """The answer to a request that the API itself refuses."""
    return answer(
        request,
        refused.status_code,
        refused.detail,
        hint=refused.hint,
        headers=refused.headers,
        errors=refused.errors,
    )


def unforeseen(request: HTTPConnection, error: Exception) -> Response:
    """The answer to what nobody foresaw: the log has it, the caller does not."""
    log.error("request %s failed", request_id(request), exc_info=error)
    return answer(request, 500, "something went wrong here; the server's log says what")


def answer(
    request: HTTPConnection,
    status: int,
    detail: str,
    *,
    hint: str | None = None,
    headers: Mapping[str, str] | None = None,
    errors: Sequence[ProblemItem] = (),
) -> Response:
    """The answer that says why a request was not done."""
    told = details(status, detail, hint=hint, request=request_id(request), errors=errors)
    page: ErrorPage | None = getattr(request.app.state, "error_page", None)
    response = page(request, told) if page else None
    if response is None:
        body = told.model_dump(exclude_none=True)
        response = JSONResponse(body, status, media_type=MEDIA)
    response.headers.update(headers or {})
    return response


def details(
    status: int,
    detail: str,
    *,
    hint: str | None = None,
    request: str | None = None,
    errors: Sequence[ProblemItem] = (),
) -> ProblemDetails:
    """Why a request was not done; without a request, what came was none."""
    name, title = _TITLES.get(status, ("error", "Error"))
    return ProblemDetails(
        type=f"urn:opsdrill:problem:{name}",
        title=title,
        status=status,
        detail=printable(detail),
        hint=printable(hint) if hint else None,
        instance=f"urn:opsdrill:request:{request or secrets.token_hex(8)}",
        errors=list(errors),
    )


def request_id(request: HTTPConnection) -> str:
    """What the log calls this request."""
    known: str | None = getattr(request.state, "id", None)
    if known is None:
        known = request.state.id = secrets.token_hex(8)
    return known


def item(problem: Problem, names: Sequence[str]) -> ProblemItem:
    """One finding; the file that it is in is the server's own affair."""
    return ProblemItem(
        path=printable(problem.path),
        message=printable(without_paths(problem.message, names)),
        severity=problem.severity,
        code=problem.code,
        line=problem.line,
        column=problem.column,
        suggestion=problem.suggestion,
        replacement=problem.replacement,
    )


def printable(text: str) -> str:
    """A sentence that can be sent: half a surrogate pair has no bytes."""
    return text.encode("utf-8", "replace").decode()


def _validation_item(found: ErrorDetails) -> ProblemItem:
    """One of the framework's findings; of a body the path alone, else with where it was sent."""
    source, *rest = found["loc"]
    if source == "body" and not rest and isinstance(found.get("input"), bytes):
        message = "is not said to be JSON; send it with `Content-Type: application/json`"
        return ProblemItem(path="", message=message)
    where = [] if source == "body" else [source]
    return ProblemItem(path=printable(dotted([*where, *rest])), message=printable(worded(found)))
