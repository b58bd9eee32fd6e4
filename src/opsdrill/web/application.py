"""The site: the REST API, the pages over the same use cases, and errors as pages."""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi import FastAPI
from fastapi.responses import RedirectResponse, Response
from starlette.requests import HTTPConnection

from opsdrill.api.application import PREFIX, make_application
from opsdrill.api.service import Service
from opsdrill.web import assets
from opsdrill.web.entry import inside, path_of, way_in
from opsdrill.web.pages import PAGES
from opsdrill.web.render import page
from opsdrill.wire.problems import ProblemDetails

OF_PROGRAMS = (f"{PREFIX}/", "/static/", "/health", "/ready", "/metrics")
"""What begins like this never answers by a page."""


def make_site(service: Service) -> FastAPI:
    """The API and the pages of one serving process."""
    site = make_application(service)
    site.state.error_page = error_page
    site.include_router(assets.router)
    for router in PAGES:
        site.include_router(router)
    return site


def error_page(request: HTTPConnection, problem: ProblemDetails) -> Response | None:
    """An error for people: the way to the log-in page, or a page that says what is wrong.

    A script gets problem details, like any program; where the session is over it is sent on.
    """
    method, path = request.scope["method"], request.scope["path"]
    if path.startswith(OF_PROGRAMS):
        return None
    if "hx-request" in request.headers:
        if problem.status != 401:
            return None
        return Response(status_code=401, headers={"HX-Redirect": way_in(_looked_at(request))})
    if "text/html" not in request.headers.get("accept", ""):
        return None
    if problem.status == 401 and method in ("GET", "HEAD"):
        if request.headers.get("sec-fetch-site") == "cross-site":
            # A link of another site brings no cookie along; the same address asked again does.
            return page(request, "bounce.html", {"here": path_of(request)}, status=200)
        return RedirectResponse(way_in(path_of(request)), 303)
    return page(request, "error.html", {"problem": problem}, status=problem.status)


def _looked_at(request: HTTPConnection) -> str:
    """The page whose script asked, by its path and query."""
    try:
        parts = urlsplit(request.headers.get("hx-current-url", ""))
    except ValueError:
        return "/"
    return inside(f"{parts.path}?{parts.query}" if parts.query else parts.path)
