"""What a search gives, and the protocol of whatever searches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from opsdrill.patterns.pattern import Pattern

Span = tuple[int, int]
"""Start and end of a match in code points, the end exclusive."""


@dataclass(frozen=True, slots=True)
class Searched:
    """What became of a search: one span a value, in the order of the values.

    A span is None where the pattern does not match, and where it is not known whether it does:
    `exhausted` holds the places of those values, ascending.
    """

    spans: tuple[Span | None, ...]
    exhausted: tuple[int, ...] = ()


class Searcher(Protocol):
    """Searches one pattern in many values, each value apart."""

    @property
    def seconds(self) -> float:
        """The budget of one value, in CPU seconds."""

    def search(self, pattern: Pattern, values: Sequence[str]) -> Searched:
        """The first match of `pattern` in each value, as Python's `re.search` finds it."""


@dataclass(frozen=True, slots=True)
class Found:
    """What became of one of many patterns that were searched together.

    Attributes:
        count: in how many values it was found.
        first: the first of them, each by its place and the span of the first match there.
        exhausted: the places of the values in which it is not known whether it is, ascending.
    """

    count: int = 0
    first: tuple[tuple[int, Span], ...] = ()
    exhausted: tuple[int, ...] = ()


class Searches(Protocol):
    """Many patterns, made ready to be searched together in values again and again."""

    def search(self, values: Sequence[str], shown: int) -> tuple[Found, ...]:
        """What was found of each pattern, in the order of the patterns.

        Args:
            values: each is searched apart.
            shown: how many of the values in which a pattern was found are told with a span.
        """


@runtime_checkable
class BulkSearcher(Searcher, Protocol):
    """A searcher that gains by knowing all patterns beforehand."""

    def prepare(self, patterns: Sequence[Pattern]) -> Searches:
        """Make patterns ready; for one thread at a time."""


class OneByOne:
    """Searches one pattern after the other."""

    def __init__(self, patterns: Sequence[Pattern], searcher: Searcher) -> None:
        self._patterns = tuple(patterns)
        self._searcher = searcher

    def search(self, values: Sequence[str], shown: int) -> tuple[Found, ...]:
        return tuple(
            _found(self._searcher.search(pattern, values), shown) for pattern in self._patterns
        )


def prepare(patterns: Sequence[Pattern], searcher: Searcher) -> Searches:
    """Patterns made ready in the way that the searcher knows."""
    if isinstance(searcher, BulkSearcher):
        return searcher.prepare(patterns)
    return OneByOne(patterns, searcher)


def _found(searched: Searched, shown: int) -> Found:
    hits = [(place, span) for place, span in enumerate(searched.spans) if span is not None]
    return Found(len(hits), tuple(hits[:shown]), searched.exhausted)
