"""The tail of one run, for all who follow it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from opsdrill.app.events.news import News, told
from opsdrill.app.events.position import Position
from opsdrill.app.events.run_news import Pages
from opsdrill.app.events.tail import Tail
from opsdrill.app.own_folders import without_paths
from opsdrill.runner.engine import RunEvent


@dataclass(slots=True)
class RunFollower:
    """What one follower of a run was told."""

    position: Position

    def takes(self, news: News) -> bool:
        if news.mark is None:
            return True
        [position] = news.mark
        assert isinstance(position, Position)
        if position <= self.position:
            return False
        self.position = position
        return True


class RunTail(Tail):
    """Tells what the store learns of one run.

    Args:
        run: its id.
        position: what is told begins behind it.
    """

    def __init__(self, pages: Pages, run: str, position: Position) -> None:
        super().__init__(f"events of run {run}")
        self._pages = pages
        self._run = run
        self._follower = RunFollower(position)
        self._only_events = False

    def hear(self, event: RunEvent) -> None:
        if event.run != self._run:
            return
        if event.step is not None:
            line = without_paths(event.step, self._pages.folders)
            self.window.add([told("step", {"run": event.run, "line": line})])
        else:
            self._only_events = event.job is not None and self._follower.position.events > 0
            self.wake()

    async def look(self) -> bool:
        # Reading a whole run takes longer than reading what its agent did since.
        read = self._pages.events if self._only_events else self._pages.news
        self._only_events = False
        found = await asyncio.to_thread(read, self._run, self._follower.position)
        fresh = [news for news in found if self._follower.takes(news)]
        self.window.add(fresh)
        if found and found[-1].last:
            self._end()
        return bool(fresh)


async def missed(pages: Pages, run: str, follower: RunFollower) -> AsyncIterator[News]:
    """What a follower was not told yet, as far as the store has it."""
    while True:
        found = await asyncio.to_thread(pages.news, run, follower.position)
        fresh = [news for news in found if follower.takes(news)]
        for news in fresh:
            yield news
        if not fresh or fresh[-1].last:
            return
