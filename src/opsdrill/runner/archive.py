"""The store, asked from one thread of its own, so that the loop never waits for a disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from opsdrill.store.store import Store

P = ParamSpec("P")
T = TypeVar("T")


async def landed(landing: asyncio.Future[T]) -> T:
    """Wait for something that must come to its end.

    Cancelled, it still lets it land before the cancellation goes on; a second one does
    not wait.
    """
    try:
        return await asyncio.shield(landing)
    except asyncio.CancelledError:
        if not landing.done():
            await asyncio.wait({landing})
        raise


class Archive:
    """Calls of a store, in the order they were made, each run by one worker thread.

    What was handed over is written even when the caller is cancelled meanwhile.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="opsdrill-store")

    def submit(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Hand a call over without waiting for it."""
        done = asyncio.wrap_future(self._thread.submit(call, *args, **kwargs))
        # Whoever waits gets the error too; nobody need wait for this one to be reported.
        done.add_done_callback(lambda future: future.cancelled() or future.exception())
        return done

    async def keep(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Hand a call over and wait until it landed (see `landed`).

        Raises:
            Exception: whatever the call raises.
        """
        return await landed(self.submit(call, *args, **kwargs))

    def close(self, *, at_once: bool = False) -> None:
        """End the thread after what was handed over; the store itself stays open."""
        self._thread.shutdown(wait=not at_once)
