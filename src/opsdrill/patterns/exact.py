"""The exact search: Python's own `re` in a process of its own, which can be ended."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from opsdrill.errors import OpsDrillError
from opsdrill.patterns.pattern import Pattern
from opsdrill.patterns.search_process import OutOfBudget, ProcessLost, SearchProcess
from opsdrill.patterns.searcher import Span
from opsdrill.patterns.turnstile import Turnstile

BATCH_VALUES = 1000
BATCH_CHARACTERS = 1024 * 1024
WHOLE_SEARCH = 30
"""A whole search gets so many times the budget of one value, so that many slow values end too."""
TRIES = 3
"""So often a value is searched whose process was lost for no reason of its own."""
LOSSES = 9
"""After so many lost processes with no answer in between, a search is given up."""


@dataclass(slots=True)
class _Work:
    """One search under way: the batches left to do, and what was found."""

    pattern: bytes
    values: Sequence[str]
    left: deque[list[int]]
    spans: list[Span | None]
    exhausted: list[int] = field(default_factory=list)
    spent: float = 0.0
    lost: int = 0

    def one_by_one(self, batch: list[int]) -> None:
        """Put a batch back as requests of one value each."""
        self.left.extendleft([index] for index in reversed(batch))

    def encoded(self, batch: list[int]) -> list[bytes]:
        return [_bytes(self.values[index]) for index in batch]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _batches(values: Sequence[str], wanted: Sequence[int]) -> deque[list[int]]:
    batches: deque[list[int]] = deque()
    room = 0
    for index in wanted:
        room -= len(values[index])
        if not batches or room < 0 or len(batches[-1]) == BATCH_VALUES:
            batches.append([])
            room = BATCH_CHARACTERS - len(values[index])
        batches[-1].append(index)
    return batches


class ExactSearcher:
    """Searches with `re` in a process that is started when first needed, and kept.

    Args:
        seconds: CPU seconds for one value.
        patience: wall seconds after which a process that answers nothing is given up.
    """

    def __init__(self, seconds: float, patience: float) -> None:
        self._seconds = seconds
        self._patience = patience
        self._process: SearchProcess | None = None
        self._turnstile = Turnstile(patience)
        self._lock = threading.Lock()
        self._closed = False

    def search(
        self,
        pattern: Pattern,
        values: Sequence[str],
        wanted: Sequence[int],
        spans: list[Span | None],
    ) -> list[int]:
        """Put the span of every value whose place is `wanted` into `spans`.

        Returns:
            The places of the values that ran out of time or memory, ascending.

        Raises:
            OpsDrillError: no process can be started, or the searcher was closed meanwhile.
        """
        work = _Work(_bytes(pattern.text), values, _batches(values, wanted), spans)
        while work.left:
            with (
                self._lock
            ):  # let go between requests, so that a slow search keeps no other waiting
                self._step(work)
        return sorted(work.exhausted)

    def _step(self, work: _Work) -> None:
        batch = work.left.popleft()
        if work.spent >= WHOLE_SEARCH * self._seconds:
            work.exhausted += batch
            return
        try:
            with self._turnstile.among_others():
                self._request(work, batch)
        except OutOfBudget:
            work.spent += self._seconds
            if len(batch) > 1:
                work.one_by_one(batch)
            else:
                self._alone(work, batch)
        except ProcessLost:
            self._again(work, batch)

    def _request(self, work: _Work, batch: list[int]) -> None:
        found, used = self._running().search(work.pattern, work.encoded(batch))
        work.spent += used
        work.lost = 0
        for index, (start, end) in zip(batch, found, strict=False):
            if start >= 0:
                work.spans[index] = (start, end)
            elif start == -2:
                work.exhausted.append(index)
        if len(found) < len(batch):
            work.left.appendleft(batch[len(found) :])

    def _alone(self, work: _Work, batch: list[int]) -> None:
        """Once more, with no other search of this user under way: was the machine just busy?"""
        try:
            with self._turnstile.alone():
                self._request(work, batch)
        except OutOfBudget:
            work.spent += self._seconds
            work.exhausted += batch
        except ProcessLost:
            self._again(work, batch)

    def _again(self, work: _Work, batch: list[int]) -> None:
        """The process was ended by somebody or fell silent, maybe for want of memory."""
        work.lost += 1
        if work.lost >= LOSSES:
            work.exhausted += (index for indexes in (batch, *work.left) for index in indexes)
            work.left.clear()
        elif len(batch) > 1:
            work.one_by_one(batch)
        elif work.lost % TRIES:
            work.left.appendleft(batch)
        else:
            work.exhausted += batch

    def _running(self) -> SearchProcess:
        if self._closed:
            raise OpsDrillError("the search was stopped, because its searcher was closed")
        if self._process is None or self._process.over:
            self._process = SearchProcess(self._seconds, self._patience)
        return self._process

    def close(self) -> None:
        """End the process, and a search that waits for it. Repeatable."""
        self._closed = True
        process = self._process
        if process is not None:
            process.kill()
        with self._lock:
            if self._process is not None:
                self._process.close()
                self._process = None
