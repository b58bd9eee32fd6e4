"""Tokens, for admins; and a browser's session, for everybody who has a token."""

from __future__ import annotations

from datetime import timedelta

from fastapi import APIRouter, Request, Response

from opsdrill.api import entry
from opsdrill.api.bodies import ToTheLetter
from opsdrill.api.entry import Who, needs
from opsdrill.api.problems import answers
from opsdrill.api.service import Served, Service
from opsdrill.app.access import SESSION, Caller, LoggedIn, Token, digest
from opsdrill.wire.tokens import (
    CallerTold,
    LoginAsked,
    TokenAsked,
    TokenList,
    TokenMade,
    TokenTold,
)

router = APIRouter(route_class=ToTheLetter)


@router.get(
    "/tokens",
    operation_id="list_tokens",
    summary="List tokens",
    description="All tokens without their secrets, those that are over too, the oldest first.",
    tags=["tokens"],
    **needs("admin"),
)
async def list_tokens(service: Served) -> TokenList:
    found = await service.call(service.access.tokens)
    return TokenList(tokens=[_told(service, token) for token in found])


@router.post(
    "/tokens",
    status_code=201,
    operation_id="create_token",
    summary="Make a token",
    description="A new token. Its secret is in this answer and nowhere else, ever.",
    responses=answers(422),
    tags=["tokens"],
    **needs("admin"),
)
async def create_token(
    asked: TokenAsked, service: Served, who: Who, response: Response
) -> TokenMade:
    made = await service.call(
        service.access.create, asked.name, asked.role, days=asked.expires_in_days, by=who.name
    )
    response.headers["location"] = f"/api/v1/tokens/{made.token.id}"
    return TokenMade(**_told(service, made.token).model_dump(), secret=made.secret)


@router.get(
    "/tokens/{token}",
    operation_id="read_token",
    summary="Read a token",
    description="One token by its id, without its secret.",
    responses=answers(404),
    tags=["tokens"],
    **needs("admin"),
)
async def read_token(token: str, service: Served) -> TokenTold:
    return _told(service, await service.call(service.access.token, token))


@router.delete(
    "/tokens/{token}",
    operation_id="revoke_token",
    summary="Revoke a token",
    description="Ends a token at once, and every browser's session begun with it. It stays listed.",
    responses=answers(404),
    tags=["tokens"],
    **needs("admin"),
)
async def revoke_token(token: str, service: Served) -> TokenTold:
    return _told(service, await service.call(service.access.revoke, token))


@router.post(
    "/session",
    status_code=201,
    operation_id="log_in",
    summary="Log in",
    description=(
        "Begins a browser's session of 12 hours for the holder of a token: sets its cookie, and "
        "tells the CSRF token that every change must carry. Takes no role."
    ),
    responses=answers(401, 422, 429),
    tags=["session"],
)
async def log_in(
    asked: LoginAsked, request: Request, service: Served, response: Response
) -> CallerTold:
    found = await begun(request, service, asked.token)
    set_cookie(request, service, response, found.secret, SESSION)
    return _caller(found.caller)


@router.get(
    "/session",
    operation_id="read_session",
    summary="Who am I?",
    description="The name and the role of the caller; in a browser's session its CSRF token.",
    tags=["session"],
    **needs("read"),
)
async def read_session(who: Who) -> CallerTold:
    return _caller(who)


@router.delete(
    "/session",
    status_code=204,
    operation_id="log_out",
    summary="Log out",
    description="Ends the browser's session. With a token and no session nothing happens.",
    tags=["session"],
    **needs("read"),
)
async def log_out(request: Request, service: Served, who: Who) -> Response:
    response = Response(status_code=204)
    held = request.cookies.get(entry.cookie_name(request, service))
    if who.session and held is not None:
        await service.call(service.access.log_out, held)
        set_cookie(request, service, response, "", timedelta(0))
    return response


async def begun(request: Request, service: Service, token: str) -> LoggedIn:
    """A browser's new session for the holder of a token.

    Raises:
        Refused: the token lets nobody in, or the address failed too often.
    """
    address, hashed = entry.address_of(request), digest(token)
    entry.check_attempts(service, address, hashed)
    found = await service.call(service.access.log_in, token)
    entry.noted(service, address, hashed, found.caller if isinstance(found, LoggedIn) else found)
    assert isinstance(found, LoggedIn)
    return found


def set_cookie(
    request: Request, service: Service, response: Response, value: str, age: timedelta
) -> None:
    """Have the browser hold what vouches for its session, for so long; no time at all ends it."""
    response.set_cookie(
        entry.cookie_name(request, service),
        value,
        max_age=int(age.total_seconds()),
        path="/",
        secure=entry.over_https(request, service),
        httponly=True,
        samesite="strict",
    )


def _told(service: Service, token: Token) -> TokenTold:
    return TokenTold(
        id=token.id,
        name=token.name,
        role=token.role,
        state=service.access.state(token),
        created_at=token.created_at,
        expires_at=token.expires_at,
        revoked_at=token.revoked_at,
        last_used_at=token.last_used_at,
        by=token.by,
    )


def _caller(who: Caller) -> CallerTold:
    return CallerTold(name=who.name, role=who.role, token=who.token, csrf=who.csrf)
