"""What a search gives, and the protocol of whatever searches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

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
