"""One file a page, each with its `router`; listed here, they are part of the site."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter

from opsdrill.web.pages import (
    batches,
    compare,
    home,
    hosts,
    log_in,
    run,
    runs,
    scenario_form,
    scenarios,
    settings,
    start,
    trends,
)

# The first that fits an address counts: a fixed one stands before one with a name in it.
PAGES: Sequence[APIRouter] = (
    home.router,
    log_in.router,
    runs.router,
    run.router,
    scenario_form.router,
    scenarios.router,
    start.router,
    batches.router,
    hosts.router,
    settings.router,
    compare.router,
    trends.router,
)
