"""The searcher that grading uses: exact, and bounded in time and memory."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from opsdrill.patterns.bulk import Bulk
from opsdrill.patterns.exact import ExactSearcher
from opsdrill.patterns.pattern import Pattern
from opsdrill.patterns.searcher import Searched, Searches, Span
from opsdrill.patterns.sifted import Sifted

SECONDS = 2.0
"""CPU seconds that a pattern may use on one value."""

PATIENCE = 60.0
"""Wall seconds until a search process that answers nothing is given up."""


class BoundedSearcher:
    """Finds what `re.search(pattern, value, re.IGNORECASE)` finds, and always comes to an end.

    Values are searched by a linear-time engine where it is known to agree with `re`, all others
    by `re` itself in a process of its own. May be used from several threads; close it after use.

    Args:
        seconds: CPU seconds for one value. A value that needs more is tried once more alone, then
            reported as exhausted. A whole search gets 30 times as much.
        patience: wall seconds until a search process that answers nothing is given up.

    Raises:
        ValueError: `seconds` is less than a millisecond, which no clock of a process measures.
    """

    def __init__(self, seconds: float = SECONDS, *, patience: float = PATIENCE) -> None:
        if seconds < 0.001:
            raise ValueError("a search needs a budget of at least 0.001 s")
        self._seconds = seconds
        self._exact = ExactSearcher(seconds, patience)
        self._last: Sifted | None = None

    @property
    def seconds(self) -> float:
        return self._seconds

    def search(self, pattern: Pattern, values: Sequence[str]) -> Searched:
        """The first match of `pattern` in each value.

        Raises:
            OpsDrillError: no search process can be started, or the searcher was closed.
        """
        spans: list[Span | None] = [None] * len(values)
        linear = pattern.linear
        left: Sequence[int] = range(len(values))
        if linear is not None:
            left = linear.search(self._sift(values), spans)
        exhausted = self._exact.search(pattern, values, left, spans) if left else []
        return Searched(tuple(spans), tuple(exhausted))

    def prepare(self, patterns: Sequence[Pattern]) -> Searches:
        """Make patterns ready to be searched together; for one thread at a time."""
        return Bulk(patterns, self.search)

    def _sift(self, values: Sequence[str]) -> Sifted:
        """The values by kind; kept for the next pattern, since many ask the same values."""
        last = self._last
        if last is None or last.values is not values or not isinstance(values, tuple):
            self._last = last = Sifted(values)
        return last

    def close(self) -> None:
        """End the search process, and a search that waits for it. Repeatable."""
        self._exact.close()
        self._last = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
