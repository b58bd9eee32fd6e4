"""Who calls, and whether they may: every route says by `needs` which role it takes.

A program sends its token with every request. A browser sends the cookie of a session, which comes
along by itself; so every change that comes with one must also carry the session's CSRF token.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.requests import HTTPConnection
from starlette.types import Scope

from opsdrill.api.attempts import counted_address
from opsdrill.api.parameters import check_query
from opsdrill.api.problems import Refused
from opsdrill.api.service import Served, Service
from opsdrill.app.access import Admitted, Caller, Denied, Role, digest

ROLE_KEY = "x-opsdrill-role"
"""Where the OpenAPI document says which role an operation takes."""
OPEN: frozenset[tuple[str, str]] = frozenset(
    {
        ("GET", "/health"),
        ("GET", "/ready"),
        ("GET", "/api/v1/openapi.json"),
        ("POST", "/api/v1/session"),
        ("POST", "/log-in"),
    }
)
"""What takes no role at all."""
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
"""The methods that change nothing."""
CSRF_HEADER = "x-csrf-token"
MOST_SECRET = 200
"""Characters of a secret that is looked at."""


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
        check_role(await admitted(request, service), role)
        check_query(request)

    return gate


def check_role(who: Caller, role: Role | None) -> None:
    """Refuse a caller whose role is too low. Raises Refused."""
    if role is not None and not who.may(role):
        raise Refused(403, f"this takes the role {role}, and {who.name} has {who.role}")


def role_of(scope: Scope) -> Role | None:
    """The role that the route of a request takes, once it is found; None: none is known."""
    extra = getattr(scope.get("route"), "openapi_extra", None) or {}
    role: Role | None = extra.get(ROLE_KEY)
    return role


async def admitted(request: HTTPConnection, service: Service) -> Caller:
    """Who calls, as `known`, and a browser's change has its CSRF token as a header.

    Raises:
        Refused: nobody that is known, or a change from a browser without its CSRF token.
    """
    who = await known(request, service)
    check_csrf(request, who, request.headers.get(CSRF_HEADER))
    return who


async def known(request: HTTPConnection, service: Service) -> Caller:
    """Who calls, found out once for a request.

    Raises:
        Refused: nobody that is known.
    """
    found: Caller | None = getattr(request.state, "caller", None)
    if found is None:
        found = request.state.caller = await _found(request, service)
    return found


async def still_known(request: HTTPConnection, service: Service) -> bool:
    """Whether who made a request, which goes on, would be let in now."""
    try:
        await _found(request, service)
    except Refused:
        return False
    return True


def check_csrf(request: HTTPConnection, who: Caller, sent: str | None) -> None:
    """Refuse a change from a browser's session without that session's CSRF token."""
    if not who.session or request.scope["method"] in SAFE:
        return
    if sent is None or not who.sent(sent):
        raise Refused(
            403,
            "a change from a browser's session must carry that session's CSRF token",
            hint="send it as X-CSRF-Token; GET /api/v1/session tells it",
        )


async def _found(request: HTTPConnection, service: Service) -> Caller:
    headers = request.headers.getlist("authorization")
    if len(headers) > 1:  # somebody before us may have looked at the other one
        raise Refused(400, "a request has one Authorization")
    if headers:
        scheme, _, secret = headers[0].strip().partition(" ")
        if scheme.lower() != "bearer" or not secret:
            raise unauthenticated("only `Authorization: Bearer TOKEN` is understood")
        return await by_token(request, service, secret.strip())
    held = request.cookies.get(cookie_name(request, service))
    if held is None:
        raise unauthenticated("a token is needed")
    return _let_in(await service.call(service.access.by_session, held[:MOST_SECRET]))


async def by_token(request: HTTPConnection, service: Service, secret: str) -> Caller:
    """Who holds a token; an address that guesses has to wait.

    Raises:
        Refused: there is no such token, it is over, or the address failed too often.
    """
    address, hashed = address_of(request), digest(secret[:MOST_SECRET])
    check_attempts(service, address, hashed)
    return noted(
        service, address, hashed, await service.call(service.access.by_token, secret[:MOST_SECRET])
    )


def check_attempts(service: Service, address: str, hashed: str) -> None:
    """Refuse an address that failed too often; a secret that was right from it goes on."""
    wait = service.attempts.wait(address)
    if wait and not service.attempts.was_right(address, hashed):
        raise Refused(
            429,
            f"too many wrong tokens from this address; try again in {wait} seconds",
            headers={"Retry-After": str(wait)},
        )


def noted(service: Service, address: str, hashed: str, found: Admitted) -> Caller:
    """Count a guess, remember a right secret. Raises Refused for one that lets nobody in."""
    if isinstance(found, Caller):
        service.attempts.right(address, hashed)
    elif found.guess:
        service.attempts.failed(address)
    return _let_in(found)


def address_of(request: HTTPConnection) -> str:
    """The address that failures are counted for."""
    return counted_address(request.client.host if request.client else None)


def over_https(request: HTTPConnection, service: Service) -> bool:
    """Whether the browser speaks https, be it to a proxy before us."""
    return service.https or request.scope["scheme"] == "https"


def cookie_name(request: HTTPConnection, service: Service) -> str:
    """The session's cookie; under https by a name that no other host can set a cookie for."""
    return "__Host-opsdrill" if over_https(request, service) else "opsdrill"


def unauthenticated(why: str) -> Refused:
    """The refusal of somebody who is not known."""
    return Refused(
        401,
        why,
        hint="send `Authorization: Bearer TOKEN`; `opsdrill token create` makes one",
        headers={"WWW-Authenticate": "Bearer"},
    )


def _let_in(found: Admitted) -> Caller:
    if isinstance(found, Denied):
        raise unauthenticated(found.why)
    return found
