"""Who follows what: tails shared by all their followers, and limits."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager

from opsdrill.app.events.news import News, told
from opsdrill.app.events.position import Position
from opsdrill.app.events.progress import Progress
from opsdrill.app.events.run_news import Pages, sound
from opsdrill.app.events.run_tail import RunFollower, RunTail, missed
from opsdrill.app.events.runs_tail import RunsFollower, RunsTail
from opsdrill.app.events.tail import Tail
from opsdrill.app.history import waiting_runs
from opsdrill.app.own_folders import without_paths
from opsdrill.errors import OpsDrillError
from opsdrill.runner.engine import RunEvent
from opsdrill.store.store import Store

IN_ALL = 1000
OF_ONE = 250
"""Followers at once, and those of one caller."""
QUIET_SECONDS = 15.0
"""After so long without news a follower is told that it still follows."""


class TooManyFollowers(OpsDrillError):
    """Nobody more can follow now.

    Args:
        own: they are this caller's own.
    """

    fault = "operator"

    def __init__(self, own: bool, most: int) -> None:
        whose = f"you follow in {most} places" if own else f"{most} others follow"
        super().__init__(f"no more events can be followed now: {whose}", hint="try again later")
        self.own = own


class Followers:
    """Follows runs for callers; used on one loop.

    Args:
        listen: lets somebody hear all that the engine says, until what it returns is called.
        folders: folders of this machine that nobody is told.
    """

    def __init__(
        self,
        store: Store,
        listen: Callable[[Callable[[RunEvent], None]], Callable[[], None]],
        folders: Sequence[str] = (),
    ) -> None:
        self._store = store
        self._pages = Pages(store, folders)
        self._folders = folders
        self._tails: dict[tuple[str, str | None], Tail] = {}
        self._callers: Counter[str] = Counter()
        self._closed = False
        self._steps: dict[str, str] = {}
        self._stop_listening = listen(self._hear)

    @property
    def count(self) -> int:
        """How many follow now."""
        return self._callers.total()

    @contextmanager
    def admitted(self, caller: str, room: int | None = None) -> Iterator[None]:
        """A place for one more follower.

        Args:
            room: how many there may be, where that is less than `IN_ALL`.

        Raises:
            TooManyFollowers: there is none.
        """
        most = IN_ALL if room is None else min(IN_ALL, room)
        if self.count >= most:
            raise TooManyFollowers(own=False, most=most)
        if self._callers[caller] >= OF_ONE:
            raise TooManyFollowers(own=True, most=OF_ONE)
        self._callers[caller] += 1
        try:
            yield
        finally:
            self._callers[caller] -= 1
            if not self._callers[caller]:
                del self._callers[caller]

    async def waits_for(self, run: str) -> str | None:
        """What a run is waiting for now, in this process or in another; None: for nothing."""
        if (line := self._steps.get(run)) is not None:
            return line
        return (await asyncio.to_thread(waiting_runs, self._store)).get(run)

    async def run(self, run: str, position: Position) -> AsyncIterator[News | None]:
        """The news of one run from a place on, to its result; None when it is quiet.

        Raises:
            KeyError: there is no such run.
        """
        follower = RunFollower(await asyncio.to_thread(sound, self._store, run, position))
        async for news in missed(self._pages, run, follower):
            yield news
            if news.last:
                return
        if line := await self.waits_for(run):
            yield told("step", {"run": run, "line": without_paths(line, self._folders)})
        tail = self._tail(("run", run), lambda: RunTail(self._pages, run, follower.position))
        with self._using(tail):
            while not (tail.ended and self._closed):
                number = tail.window.next
                async for news in missed(self._pages, run, follower):
                    yield news
                    if news.last:
                        return
                async for heard in self._heard(tail, number):
                    if heard is None or follower.takes(heard):
                        yield heard
                    if heard is not None and heard.last:
                        return
                if tail.ended:
                    return

    async def runs(self, batch: str | None, last: Progress | None) -> AsyncIterator[News | None]:
        """The states that the runs of a batch, or all, come to; None when it is quiet.

        One who reads so slowly that news are gone comes to the end, and goes on from its place.
        """
        tail = self._tail(("batch", batch), lambda: RunsTail(self._store, batch, self._folders))
        assert isinstance(tail, RunsTail)
        follower = RunsFollower({})
        with self._using(tail):
            number = tail.window.next
            async for news in tail.missed(follower, last):
                yield news
            async for heard in self._heard(tail, number):
                if heard is None or follower.takes(heard):
                    yield heard

    async def _heard(self, tail: Tail, number: int) -> AsyncIterator[News | None]:
        """What a tail tells from a number on, until it ends or news are gone; None when quiet."""
        while (found := tail.window.since(number)) is not None:
            for news in found:
                number += 1
                yield news
            if tail.ended and number == tail.window.next:
                return
            if not found and not await tail.window.wait(QUIET_SECONDS):
                yield None

    async def close(self) -> None:
        """Let all who follow come to their end."""
        self._closed = True
        self._stop_listening()
        await asyncio.gather(*(tail.close() for tail in list(self._tails.values())))

    def _hear(self, event: RunEvent) -> None:
        if event.step is not None:
            self._steps[event.run] = event.step
        else:
            self._steps.pop(event.run, None)
        for tail in list(self._tails.values()):
            tail.hear(event)

    def _tail(self, key: tuple[str, str | None], made: Callable[[], Tail]) -> Tail:
        tail = self._tails.get(key)
        if tail is None or tail.ended:
            tail = self._tails[key] = made()
            if self._closed:
                tail.retire()
            else:
                tail.start()
        return tail

    @contextmanager
    def _using(self, tail: Tail) -> Iterator[None]:
        tail.users += 1
        try:
            yield
        finally:
            tail.users -= 1
            if not tail.users:
                tail.retire()
                for key in [key for key, other in self._tails.items() if other is tail]:
                    del self._tails[key]
