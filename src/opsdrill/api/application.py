"""The application: every router, every limit, one shape of errors."""

from __future__ import annotations

from fastapi import FastAPI

from opsdrill import __version__
from opsdrill.api import problems
from opsdrill.api.service import Service

PREFIX = "/api/v1"


def make_application(service: Service) -> FastAPI:
    """The API of one serving process."""
    application = FastAPI(
        title="OpsDrill",
        version=__version__,
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,  # those pages load their scripts from other hosts
        redoc_url=None,
    )
    application.state.service = service
    problems.install(application, [str(service.place.home), str(service.place.folder)])
    return application
