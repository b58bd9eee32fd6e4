"""A tail: it looks at the store when the engine says that something happened, else now and then."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from opsdrill.app.events.news import News, Window
from opsdrill.errors import OpsDrillError
from opsdrill.runner.engine import RunEvent

SETTLE_SECONDS = 0.06
"""What happened is in the store after about this long."""
QUICKEST, SLOWEST = 0.1, 2.0
"""Seconds between two looks: soon after something happened, and while nothing does."""

log = logging.getLogger(__name__)


class Follower(Protocol):
    """One follower's own account of what it was told."""

    def takes(self, news: News) -> bool:
        """Whether this is new to it; it is told then."""


class Tail:
    """Tells news to a window that any number of followers look at.

    Attributes:
        window: the latest news.
        ended: nothing follows.
        users: how many look at the window.
        ready: the first look is done.
    """

    def __init__(self, name: str) -> None:
        self.window = Window()
        self.ended = False
        self.users = 0
        self.ready = asyncio.Event()
        self._name = name
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look."""
        self._task = asyncio.create_task(self._follow(), name=self._name)

    def retire(self) -> None:
        """Stop looking; whoever follows comes to its end."""
        self._end()
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        """Tell what is in the store by now, then end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        try:
            while not self.ended and await self.look():
                pass
        except (KeyError, OpsDrillError) as error:
            log.debug("%s ends: %s", self._name, error)
        self._end()

    def hear(self, event: RunEvent) -> None:
        """Something happened in a run of this process."""
        raise NotImplementedError

    async def look(self) -> bool:
        """Tell what is new in the store; whether anything was."""
        raise NotImplementedError

    def wake(self) -> None:
        """Have a look soon."""
        self._woken.set()

    def _end(self) -> None:
        self.ended = True
        self.ready.set()
        self.window.wake()

    async def _follow(self) -> None:
        pause = QUICKEST
        try:
            while not self.ended:
                found = await self.look()
                self.ready.set()
                if found:
                    pause = QUICKEST
                    continue
                if await self._woke(pause):
                    pause = QUICKEST
                    await asyncio.sleep(SETTLE_SECONDS)
                else:
                    pause = min(pause * 2, SLOWEST)
        except KeyError:
            log.debug("%s ends: what it followed was deleted", self._name)
            self._end()
        except OpsDrillError as error:
            log.warning("%s ends: %s", self._name, error)
            self._end()

    async def _woke(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return False
        self._woken.clear()
        return True
