"""One follower of runs, with a queue of its own that cannot grow without bound."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable

from opsdrill.model.result import Result
from opsdrill.runner.engine import RunEvent

WAITING_EVENTS = 1000


class Subscription(AsyncIterator[RunEvent]):
    """The events of some runs from now on; ends when all of them are over.

    One who reads too slowly loses what agents do (`job`, `step`), which the store keeps anyway,
    but never a phase or a result; `lost` counts them.

    Args:
        live: the runs that are not over yet.
        over: the runs whose result is told at once.
        result_of: the result of a run that is over.
    """

    def __init__(
        self,
        live: set[str],
        over: tuple[str, ...],
        result_of: Callable[[str], Awaitable[Result]],
    ) -> None:
        self.lost = 0
        self._live = live
        self._over = deque(over)
        self._result_of = result_of
        self._waiting: deque[RunEvent] = deque()
        self._news = asyncio.Event()
        self._closed = False

    def offer(self, event: RunEvent) -> None:
        """Take an event if it belongs to one of the runs."""
        if event.run not in self._live:
            return
        if event.result is not None:
            self._live.discard(event.run)
        elif event.phase is None and len(self._waiting) >= WAITING_EVENTS:
            self.lost += 1
            return
        self._waiting.append(event)
        self._news.set()

    def close(self) -> None:
        """No event follows those that are waiting."""
        self._closed = True
        self._news.set()

    async def __anext__(self) -> RunEvent:
        if self._over:
            run = self._over.popleft()
            return RunEvent(run, result=await self._result_of(run))
        while not self._waiting:
            if self._closed or not self._live:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return self._waiting.popleft()
