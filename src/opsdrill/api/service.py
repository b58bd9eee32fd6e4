"""What one serving process holds, from its start to its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, ParamSpec, TypeVar

import anyio.to_thread
from anyio import CapacityLimiter
from fastapi import Depends, Request

from opsdrill.api.attempts import Attempts
from opsdrill.app.access import Access
from opsdrill.app.live import LiveEngine
from opsdrill.app.wiring import Place
from opsdrill.store.store import Store

P = ParamSpec("P")
T = TypeVar("T")

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
"""What this machine calls itself."""


@dataclass(frozen=True, slots=True)
class Service:
    """Everything that an endpoint may use.

    Args:
        place: where it works.
        store: open for as long as the process serves.
        access: tokens and sessions.
        engine: works off the runs.
        threads: how many calls of the store run at once.
        attempts: who tried wrong secrets.
        hosts: the names, in small letters and without a port, that a request may call us by.
        https: browsers reach us by https, through a proxy.
        open_metrics: `/metrics` takes no token.
        endings: called when the process ends, while the store is still open.
    """

    place: Place
    store: Store
    access: Access
    engine: LiveEngine
    threads: CapacityLimiter
    attempts: Attempts = field(default_factory=Attempts)
    hosts: frozenset[str] = LOOPBACK
    https: bool = False
    open_metrics: bool = False
    endings: list[Callable[[], None]] = field(default_factory=list)

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call what waits for the disk or the database, on a thread of its own."""
        return await anyio.to_thread.run_sync(
            partial(function, *args, **kwargs), limiter=self.threads
        )


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


Served = Annotated[Service, Depends(_service)]
"""The parameter of an endpoint that gets the service."""


def once(request: Request, name: str, make: Callable[[], T]) -> T:
    """What is made when it is first asked for, and kept under its name until the process ends.

    To be called in the loop, not on a thread.
    """
    state = request.app.state
    if not hasattr(state, name):
        setattr(state, name, make())
    known: T = getattr(state, name)
    return known
