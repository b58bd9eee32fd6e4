"""Repetitions over which a backtracking search takes exponential time.

A loop's body becomes an automaton with a state for each of its characters (Glushkov 1961), each
way to get from one to another counted. Time is exponential just where two different ways lead
from a state back to itself over the same text (Weber and Seidl 1991, "EDA"), and something behind
the loop can fail, so that all ways are tried.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from opsdrill.scenarios.lint.emptiness import may_be_empty
from opsdrill.scenarios.lint.expression import (
    Character,
    Choice,
    Dot,
    Expression,
    Group,
    Item,
    Repeat,
    Set,
)
from opsdrill.scenarios.lint.skeleton import accepted

STATES_LIMIT = 40
"""States of a loop that is looked at; larger ones are passed over."""

_COPIES = 4
_MANY = 10
_ALPHABET = "".join(map(chr, range(1, 127))) + "é١漢"


def exploding(expression: Expression) -> Repeat | None:
    """The first repetition over which a failing search takes exponential time."""
    return _exploding(expression)


@lru_cache(maxsize=1024)
def _exploding(expression: Expression) -> Repeat | None:
    for repeat, followed in _loops(expression.body, followed=False):
        if followed and _is_ambiguous(repeat):
            return repeat
    return None


def _loops(choice: Choice, *, followed: bool) -> Iterator[tuple[Repeat, bool]]:
    """Every repetition without an end, and whether something behind it can fail."""
    for option in choice.options:
        behind: list[bool] = []
        can_fail = followed
        for item in reversed(option.items):
            behind.append(can_fail)
            can_fail = can_fail or not may_be_empty(item)
        for item, followed_here in zip(option.items, reversed(behind), strict=True):
            yield from _within(item, followed=followed_here)


def _within(item: Item, *, followed: bool) -> Iterator[tuple[Repeat, bool]]:
    if isinstance(item, Repeat):
        if _is_loop(item) and item.mode != "possessive":
            yield item, followed
        yield from _within(item.item, followed=followed)
    elif isinstance(item, Group):
        inside = followed and item.kind in ("capture", "plain")
        yield from _loops(item.body, followed=inside)


def _is_loop(item: Repeat) -> bool:
    return item.high is None or item.high >= _MANY


class _NotKnown(Exception):
    """The loop holds what this does not model, or is too large."""


@dataclass(frozen=True, slots=True)
class _Part:
    """What a part of the body adds: the states it can begin and end with, and in how many ways it
    can be empty; each state with the number of ways to it."""

    first: Counter[int] = field(default_factory=Counter)
    last: Counter[int] = field(default_factory=Counter)
    empty: int = 1


@dataclass(slots=True)
class _Automaton:
    """The states by the characters they accept, as bits, and the ways from one to another."""

    accepts: list[int] = field(default_factory=list)
    ways: Counter[tuple[int, int]] = field(default_factory=Counter)

    def part(self, item: Item) -> _Part:
        if isinstance(item, (Character, Dot, Set)):
            return self._state(_bits(item))
        if isinstance(item, Group) and item.kind in ("capture", "plain"):
            return self._either([self._row(option.items) for option in item.body.options])
        if isinstance(item, Repeat) and item.mode != "possessive":
            return self._repeated(item)
        raise _NotKnown

    def loop(self, part: _Part) -> None:
        """The part may be followed by itself."""
        self._connect(part.last, part.first)

    def _row(self, items: tuple[Item, ...]) -> _Part:
        whole = _Part()
        for item in items:
            whole = self._joined(whole, self.part(item))
        return whole

    def _state(self, bits: int) -> _Part:
        if len(self.accepts) >= STATES_LIMIT:
            raise _NotKnown
        self.accepts.append(bits)
        state = len(self.accepts) - 1
        return _Part(Counter([state]), Counter([state]), 0)

    def _connect(self, last: Counter[int], first: Counter[int]) -> None:
        for one, before in last.items():
            for other, after in first.items():
                self.ways[one, other] = min(self.ways[one, other] + before * after, 2)

    def _joined(self, left: _Part, right: _Part) -> _Part:
        self._connect(left.last, right.first)
        return _Part(
            left.first + _times(right.first, left.empty),
            right.last + _times(left.last, right.empty),
            min(left.empty * right.empty, 2),
        )

    @staticmethod
    def _either(parts: list[_Part]) -> _Part:
        first, last = Counter[int](), Counter[int]()
        for part in parts:
            first.update(part.first)
            last.update(part.last)
        return _Part(first, last, min(sum(part.empty for part in parts), 2))

    def _repeated(self, item: Repeat) -> _Part:
        if _is_loop(item):
            part = self.part(item.item)
            self.loop(part)
            return _Part(part.first, part.last, min(part.empty + (item.low == 0), 2))
        whole = _Part()
        for copy in range(min(item.high or 0, _COPIES)):
            part = self.part(item.item)
            # `x{,3}` is `(x(x(x)?)?)?`: there is one way to leave out all the rest.
            if copy >= item.low:
                part = _Part(part.first, part.last, min(part.empty + 1, 2))
            whole = self._joined(whole, part)
        return whole


def _times(states: Counter[int], ways: int) -> Counter[int]:
    return Counter({state: min(count * ways, 2) for state, count in states.items() if ways})


@lru_cache(maxsize=4096)
def _bits(item: Character | Dot | Set) -> int:
    if isinstance(item, Dot):
        taken = _ALPHABET if item.flags & re.DOTALL else _ALPHABET.replace("\n", "")
    elif isinstance(item, Set):
        taken = accepted(item, _ALPHABET)
    else:
        low = item.char.lower() if item.flags & re.IGNORECASE else item.char
        fold = str.lower if item.flags & re.IGNORECASE else str
        taken = "".join(char for char in _ALPHABET if fold(char) == low)
        if not taken:
            return 1 << (len(_ALPHABET) + ord(item.char))
    return sum(1 << at for at, char in enumerate(_ALPHABET) if char in taken)


def _is_ambiguous(repeat: Repeat) -> bool:
    automaton = _Automaton()
    try:
        automaton.loop(automaton.part(repeat.item))
    except _NotKnown:
        return False
    after: dict[int, list[int]] = {}
    for one, other in automaton.ways:
        after.setdefault(one, []).append(other)
    groups = _circles({(state,): [(o,) for o in after.get(state, ())] for state in after})
    if any(
        count > 1 and groups.get((one,)) is not None and groups.get((one,)) == groups.get((other,))
        for (one, other), count in automaton.ways.items()
    ):
        return True
    pairs = _circles(_pairs(automaton.accepts, after))
    same = {circle for (one, other), circle in pairs.items() if one == other}
    return any(one != other and circle in same for (one, other), circle in pairs.items())


def _pairs(
    accepts: list[int], after: dict[int, list[int]]
) -> dict[tuple[int, ...], list[tuple[int, ...]]]:
    """Two walks at once over the same text: the pairs of states that they can be in."""
    waiting: list[tuple[int, ...]] = [(state, state) for state in after]
    found: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    while waiting:
        pair = waiting.pop()
        if pair not in found:
            one, other = pair
            found[pair] = [
                (a, b)
                for a in after.get(one, ())
                for b in after.get(other, ())
                if accepts[a] & accepts[b]
            ]
            waiting += found[pair]
    return found


def _circles(
    after: dict[tuple[int, ...], list[tuple[int, ...]]],
) -> dict[tuple[int, ...], int]:
    """Each node that can come back to itself, with the number of its circle.

    Two nodes have the same number when each can be reached from the other (Tarjan 1972).
    """
    number: dict[tuple[int, ...], int] = {}
    low: dict[tuple[int, ...], int] = {}
    path: list[tuple[int, ...]] = []
    on_path: set[tuple[int, ...]] = set()
    circle: dict[tuple[int, ...], int] = {}
    for start, steps in after.items():
        if start in number:
            continue
        work = [(start, iter(steps))]
        number[start] = low[start] = len(number)
        path.append(start)
        on_path.add(start)
        while work:
            node, rest = work[-1]
            for step in rest:
                if step not in number:
                    number[step] = low[step] = len(number)
                    path.append(step)
                    on_path.add(step)
                    work.append((step, iter(after.get(step, ()))))
                    break
                if step in on_path:
                    low[node] = min(low[node], number[step])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    _close(node, path, on_path, circle, after)
    return circle


def _close(
    node: tuple[int, ...],
    path: list[tuple[int, ...]],
    on_path: set[tuple[int, ...]],
    circle: dict[tuple[int, ...], int],
    after: dict[tuple[int, ...], list[tuple[int, ...]]],
) -> None:
    """Takes a finished circle off the path; a lone node is one only if it leads to itself."""
    members = []
    while True:
        member = path.pop()
        on_path.discard(member)
        members.append(member)
        if member == node:
            break
    if len(members) > 1 or node in after.get(node, ()):
        name = len(circle)
        circle.update(dict.fromkeys(members, name))
