"""Who calls, and whether they may: every route says by `needs` which role it takes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Depends, Request

from opsdrill.api.problems import Refused
from opsdrill.api.service import Served
from opsdrill.app.access import ROLES, Caller, Role

ROLE_KEY = "x-opsdrill-role"
"""Where the OpenAPI document says which role an operation takes."""


def needs(role: Role, *, upload: int | None = None) -> dict[str, Any]:
    """What a route is declared with so that only callers of a role, or a higher one, come in.

    `@router.get("/runs", **needs("read"), ...)`

    Args:
        upload: bytes that the body may have, where the endpoint reads it by `request.stream()`
            and has no parameter for it; any other body is bounded by `limits.BODY_BYTES`.
    """
    return {"dependencies": [Depends(_gate(role, upload))], "openapi_extra": {ROLE_KEY: role}}


def caller(request: Request) -> Caller:
    """Who calls; only behind a gate."""
    found: Caller = request.state.caller
    return found


Who = Annotated[Caller, Depends(caller)]
"""The parameter of an endpoint that asks who calls."""


def _gate(role: Role, upload: int | None) -> Callable[[Request, Served], Awaitable[None]]:
    async def gate(request: Request, service: Served) -> None:
        if upload is not None:
            request.state.upload = upload
        who = await service.call(service.access.caller, request.headers, request.cookies)
        if who is None:
            raise Refused(
                401,
                "a token is needed",
                hint="send `Authorization: Bearer TOKEN`; `opsdrill token create` makes one",
                headers={"WWW-Authenticate": "Bearer"},
            )
        if ROLES.index(who.role) < ROLES.index(role):
            raise Refused(403, f"this takes the role {role}, and {who.name} has {who.role}")
        request.state.caller = who

    return gate
