"""The OpenAPI document: what the routes say, and what holds for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from anyio import to_thread
from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi

from opsdrill.api.entry import ROLE_KEY
from opsdrill.api.links import linked
from opsdrill.api.problems import answers
from opsdrill.app import documents
from opsdrill.wire.problems import ProblemDetails

TEXT = (
    "Drills for AI agents that operate servers. A program sends its token as `Authorization: "
    "Bearer TOKEN`; a browser logs in at `/api/v1/session`. Every error is one shape, problem "
    "details of RFC 9457."
)
SCHEMES = {
    "token": {"type": "http", "scheme": "bearer", "description": "A token: `od_...`."},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "opsdrill",
        "description": "A browser's session; changes carry its CSRF token as X-CSRF-Token.",
    },
}
EVERY = (400, 421, 500, 503)
"""Errors that any request may meet: no host named, another one's name, our fault, no store."""
GATED = (401, 403, 429)
"""Errors of a request that takes a role."""
WITH_BODY = (408, 413, 415, 422)
_FRAMEWORKS = ("HTTPValidationError", "ValidationError")
"""Shapes of errors that the framework would give, and that we do not."""


def describe(application: FastAPI, path: str) -> None:
    """Have an application tell of itself, as `document` does, at a path.

    It is written out once: whoever asks for it need not be known.
    """
    written: list[bytes] = []

    def made() -> dict[str, Any]:
        if application.openapi_schema is None:
            application.openapi_schema = document(application)
        return application.openapi_schema

    async def answer(_request: Request) -> Response:
        if not written:
            written.append(await to_thread.run_sync(lambda: documents.written(made())))
        return Response(written[0], media_type="application/json")

    application.openapi = made  # type: ignore[method-assign]
    application.add_route(path, answer, methods=["GET"], include_in_schema=False)


def document(application: FastAPI) -> dict[str, Any]:
    """The OpenAPI document of an application."""
    found = get_openapi(
        title=application.title,
        version=application.version,
        description=application.description,
        routes=application.routes,
    )
    components = found.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in _FRAMEWORKS:
        schemas.pop(name, None)
    shape = ProblemDetails.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(shape.pop("$defs"))
    schemas["ProblemDetails"] = shape
    components["securitySchemes"] = SCHEMES
    for method, operation in _operations(found):
        _complete(method, operation)
    return found


def _operations(found: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for item in found["paths"].values():
        yield from item.items()


def _complete(method: str, operation: dict[str, Any]) -> None:
    """Add what every operation of its kind has."""
    role = operation.get(ROLE_KEY)
    statuses = {*EVERY}
    if role is not None:
        statuses |= {*GATED, 422}  # a query is checked before it is read
        operation["security"] = [{"token": []}, {"session": []}]
        operation["description"] = f"{operation.get('description', '')}\n\nRole: `{role}`.".strip()
    if method != "get":
        statuses.add(403)  # another site's page sent it
    if "requestBody" in operation:
        statuses |= {*WITH_BODY}
    said = operation.setdefault("responses", {})
    if "422" in said or operation.get("parameters"):
        statuses.add(422)
        said.pop("422", None)
    for status, told in answers(*statuses).items():
        said.setdefault(str(status), told)
    for status, answer in said.items():
        if links := linked(operation["operationId"], status):
            answer["links"] = links
    operation["responses"] = dict(sorted(said.items()))
