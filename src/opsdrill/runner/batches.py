"""Where the events of a working agent go: to the store in small batches, and to who follows."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from opsdrill.model.event import JobEvent
from opsdrill.runner.archive import Archive

BATCH_EVENTS = 200
BATCH_SECONDS = 0.05
"""An event waits this long at most until it is handed to the store."""


class EventBatches:
    """The sink of one attempt's events (`EventSink`).

    `broken` is done, with the store's error, when a batch could not be kept: evidence that
    cannot be kept makes further work worthless.

    Args:
        tell: told every event at once, on the loop's thread.
    """

    def __init__(
        self, archive: Archive, run: str, attempt: int, tell: Callable[[JobEvent], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self.broken: asyncio.Future[None] = self._loop.create_future()
        self._archive = archive
        self._run = run
        self._attempt = attempt
        self._tell = tell
        self._waiting: list[tuple[int, JobEvent]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._landing: set[asyncio.Future[None]] = set()

    def append(self, seq: int, event: JobEvent) -> None:
        """Take one event, from any thread; it is in the store after `flush` for certain."""
        if threading.get_ident() == self._thread:
            self._take(seq, event)
        else:
            self._loop.call_soon_threadsafe(self._take, seq, event)

    def _take(self, seq: int, event: JobEvent) -> None:
        self._waiting.append((seq, event))
        self._tell(event)
        if len(self._waiting) >= BATCH_EVENTS:
            self._hand_over()
        elif self._timer is None:
            self._timer = self._loop.call_later(BATCH_SECONDS, self._hand_over)

    async def flush(self) -> None:
        """Wait until everything taken so far is kept.

        Raises:
            Exception: what the store raised for any batch.
        """
        await asyncio.sleep(0)  # what other threads just gave comes first
        self._hand_over()
        if self._landing:
            await asyncio.wait(set(self._landing))
        if self.broken.done():
            self.broken.result()

    def _hand_over(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._waiting:
            return
        batch, self._waiting = tuple(self._waiting), []
        store = self._archive.store
        landing = self._archive.submit(store.append_events, self._run, self._attempt, batch)
        self._landing.add(landing)
        landing.add_done_callback(self._landed)

    def _landed(self, landing: asyncio.Future[None]) -> None:
        self._landing.discard(landing)
        error = landing.exception()
        if error is not None and not self.broken.done():
            self.broken.set_exception(error)
            self.broken.exception()  # seen: nobody need wait for it
