"""What is made once for all requests about scenarios."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from fastapi import Path as InPath

from opsdrill.api.service import Served
from opsdrill.app.library import Library


async def _library(request: Request, service: Served) -> Library:
    known: Library | None = getattr(request.app.state, "library", None)
    if known is None:
        known = request.app.state.library = Library(service.place, service.store)
    return known


Known = Annotated[Library, Depends(_library)]
"""The parameter of an endpoint that gets the library."""

Key = Annotated[str, InPath(max_length=100, examples=["disk-full"])]
"""A scenario's key in a path."""
