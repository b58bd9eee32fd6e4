"""Who looks at a page, and whether they may: as `opsdrill.api.entry`, for people.

Who is not logged in is led to the log-in page and back. A form carries the session's CSRF token in
a field of its own, a script in the header.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

from fastapi import Depends
from starlette.requests import HTTPConnection, Request

from opsdrill.api.entry import CSRF_HEADER, ROLE_KEY, SAFE, check_csrf, known
from opsdrill.api.problems import Refused
from opsdrill.api.service import Served
from opsdrill.app.access import Role
from opsdrill.web.forms import sent

LOG_IN = "/log-in"
FIELD = "csrf"
MOST_NEXT = 2000


def needs(role: Role) -> dict[str, Any]:
    """What a page is declared with so that only callers of a role, or a higher one, see it.

    `@router.get("/runs", **needs("read"))`
    """
    return {"dependencies": [Depends(_gate(role))], "openapi_extra": {ROLE_KEY: role}}


def _gate(role: Role) -> Callable[[Request, Served], Awaitable[None]]:
    async def gate(request: Request, service: Served) -> None:
        who = await known(request, service)
        if not who.may(role):
            raise Refused(
                403,
                f"this takes the role {role}, and {who.name} has {who.role}",
                hint="log out, and log in with a token of that role",
            )
        if request.method not in SAFE and who.session:
            given = request.headers.get(CSRF_HEADER) or (await sent(request)).one(FIELD)
            check_csrf(request, who, given or None)

    return gate


def way_in(wanted: str) -> str:
    """The address of the log-in page, which leads to a page of this site."""
    if wanted == "/" or len(wanted) > MOST_NEXT:
        return LOG_IN
    return f"{LOG_IN}?next={quote(wanted, safe='/')}"


def path_of(request: HTTPConnection) -> str:
    """The path that was asked for, with its query, below this site."""
    query = request.url.query
    path = "/" + request.url.path.lstrip("/")
    return f"{path}?{query}" if query else path


def inside(wanted: str) -> str:
    """Where to go after the log-in: a page of this site, whatever was asked for."""
    plain = wanted.isascii() and wanted.isprintable() and len(wanted) <= MOST_NEXT
    if not plain or not wanted.startswith("/") or wanted[1:2] in ("/", "\\"):
        return "/"
    return wanted
