"""The application: every router, the guard before them, one shape of errors."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.middleware import Middleware

import opsdrill
from opsdrill.api import (
    batches,
    comparisons,
    describe,
    events,
    grading,
    health,
    labs,
    problems,
    regrades,
    run_parts,
    runs,
    scenario_files,
    scenario_parts,
    scenarios,
    tokens,
    trends,
)
from opsdrill.api.guard import Guard
from opsdrill.api.metrics import Metrics
from opsdrill.api.service import Service
from opsdrill.app.own_folders import named_folders

PREFIX = "/api/v1"


def make_application(service: Service) -> FastAPI:
    """The API of one serving process."""
    metrics = Metrics(PREFIX)
    application = FastAPI(
        title="OpsDrill",
        version=opsdrill.__version__,
        description=describe.TEXT,
        openapi_url=None,  # `describe` tells it; the pages for it load scripts from other hosts
        redirect_slashes=False,  # a redirect would repeat what the Host header says
        middleware=[Middleware(Guard, service=service, metrics=metrics)],
    )
    application.state.service = service
    application.state.metrics = metrics
    problems.install(application, named_folders(service.place))
    application.include_router(health.router)
    for router in (
        tokens.router,
        scenarios.router,
        scenario_files.router,
        scenario_parts.router,
        grading.router,
        regrades.router,
        runs.router,
        run_parts.router,
        events.router,
        batches.router,
        comparisons.router,
        trends.router,
        labs.router,
    ):
        application.include_router(router, prefix=PREFIX)
    describe.describe(application, f"{PREFIX}/openapi.json")
    return application
