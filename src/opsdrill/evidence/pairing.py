"""Pairs from two lists that tell of the same things: each used once, in order, nearest in time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Pair(NamedTuple):
    """A place in the first list, and the place in the second that tells of the same."""

    reported: int
    seen: int


class Pairing:
    """Makes pairs, pass by pass: what one pass paired is not looked at by the next.

    Args:
        reported: when each thing of the first list was, where that is known.
        seen: likewise of the second.
    """

    def __init__(
        self, reported: Sequence[datetime | None], seen: Sequence[datetime | None]
    ) -> None:
        self._reported = reported
        self._seen = seen
        self.pairs: list[Pair] = []
        self.open_reported = list(range(len(reported)))
        self.open_seen = list(range(len(seen)))

    def match(
        self,
        reported: Callable[[int], Hashable | None],
        seen: Callable[[int], Hashable | None],
    ) -> None:
        """Pair what has the same key; a key of None matches nothing.

        Things with one key are paired in their order. Where there are more of them in one list,
        those nearest in time are taken.
        """
        left, right = _grouped(self.open_reported, reported), _grouped(self.open_seen, seen)
        found: list[Pair] = []
        for key, places in left.items():
            others = right.get(key, [])
            if len(places) <= len(others):
                chosen = self._nearest(places, others, self._reported, self._seen)
                found += [Pair(a, b) for a, b in zip(places, chosen, strict=True)]
            else:
                chosen = self._nearest(others, places, self._seen, self._reported)
                found += [Pair(a, b) for b, a in zip(others, chosen, strict=True)]
        self.pairs += found
        done = {pair.reported for pair in found}, {pair.seen for pair in found}
        self.open_reported = [place for place in self.open_reported if place not in done[0]]
        self.open_seen = [place for place in self.open_seen if place not in done[1]]

    @staticmethod
    def _nearest(
        few: Sequence[int],
        many: Sequence[int],
        few_at: Sequence[datetime | None],
        many_at: Sequence[datetime | None],
    ) -> list[int]:
        """For each of `few` one of `many`, in order; a later one where that is nearer in time."""
        chosen = []
        position, spare = 0, len(many) - len(few)
        for place in few:
            at = few_at[place]
            while spare and _nearer(at, many_at[many[position + 1]], many_at[many[position]]):
                position, spare = position + 1, spare - 1
            chosen.append(many[position])
            position += 1
        return chosen


def _grouped(
    places: Iterable[int], key: Callable[[int], Hashable | None]
) -> dict[Hashable, list[int]]:
    found: dict[Hashable, list[int]] = defaultdict(list)
    for place in places:
        if (value := key(place)) is not None:
            found[value].append(place)
    return found


def _nearer(at: datetime | None, one: datetime | None, other: datetime | None) -> bool:
    """Whether `one` is nearer to `at`; not, where that cannot be known."""
    if at is None or one is None or other is None:
        return False
    return abs(one - at) < abs(other - at)
