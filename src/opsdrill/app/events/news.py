"""One thing that is told to followers, and the window of the latest."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

from opsdrill.app import documents

WINDOW_NEWS = 500
WINDOW_BYTES = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class News:
    """One thing that is told.

    Args:
        kind: what it is called.
        data: JSON on one line.
        id: where to go on from after it; None for what is gone when it was not heard.
        mark: what tells whether a follower has it already; None: everybody takes it.
        last: nothing follows.
    """

    kind: str
    data: bytes
    id: str | None = None
    mark: tuple[object, ...] | None = None
    last: bool = False


def told(kind: str, value: Mapping[str, object]) -> News:
    """News that nobody can go on from."""
    return News(kind, documents.written(dict(value)))


class Window:
    """The latest news, numbered; bounded in number and in bytes. Used on one loop.

    Attributes:
        next: the number that the next news get.
    """

    def __init__(self) -> None:
        self.next = 0
        self._news: deque[News] = deque()
        self._bytes = 0
        self._changed = asyncio.Event()

    def add(self, news: Iterable[News]) -> None:
        """Let everybody hear news."""
        for one in news:
            self._news.append(one)
            self._bytes += len(one.data)
            self.next += 1
        while self._news and (len(self._news) > WINDOW_NEWS or self._bytes > WINDOW_BYTES):
            self._bytes -= len(self._news.popleft().data)
        self.wake()

    def since(self, number: int) -> list[News] | None:
        """The news from a number on; None when some of them are gone already."""
        first = self.next - len(self._news)
        if number < first:
            return None
        return list(islice(self._news, number - first, None))

    def wake(self) -> None:
        """Let all who wait look again."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait(self, seconds: float) -> bool:
        """Wait until something was added; False when nothing was for so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True
