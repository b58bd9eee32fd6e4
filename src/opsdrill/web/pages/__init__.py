"""One file a page, each with its `router`; listed here, they are part of the site."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter

from opsdrill.web.pages import home, log_in, runs

PAGES: Sequence[APIRouter] = (
    home.router,
    log_in.router,
    runs.router,
)
