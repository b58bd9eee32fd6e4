"""Repetitions that take exponential time are found by their structure, and no others.

The judge is a count of all the ways in which a loop can match a text, as a backtracking search
would try them.
"""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opsdrill.scenarios.lint.ambiguity import exploding
from opsdrill.scenarios.lint.expression import (
    Character,
    Group,
    Item,
    Repeat,
    Sequence,
    Set,
    read,
)

TIMES = 6
"""How often a text is repeated: at least five places to go two ways, 32 ways in all."""


class Ways:
    """In how many ways parts of a pattern match from each place of a text, up to where."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._known: dict[tuple[int, int], Counter[int]] = {}

    def of(self, item: Item, at: int) -> Counter[int]:
        key = (id(item), at)
        if key not in self._known:
            self._known[key] = self._of(item, at)
        return self._known[key]

    def _of(self, item: Item, at: int) -> Counter[int]:
        match item:
            case Character() | Set():
                accepted = item.char if isinstance(item, Character) else item.accepted("ab")
                here = self.text[at : at + 1]
                return Counter({at + 1: 1} if here and here in accepted else {})
            case Group():
                found = Counter[int]()
                for option in item.body.options:
                    found.update(self._row(option, at))
                return found
            case Repeat():
                return self._repeated(item, at)
        raise AssertionError(item)

    def _row(self, option: Sequence, at: int) -> Counter[int]:
        reached = Counter({at: 1})
        for item in option.items:
            reached = self._after(item, reached)
        return reached

    def _after(self, item: Item, reached: Counter[int], *, forward: bool = False) -> Counter[int]:
        found = Counter[int]()
        for at, count in reached.items():
            for end, more in self.of(item, at).items():
                if end > at or not forward:
                    found[end] += count * more
        return found

    def _repeated(self, item: Repeat, at: int) -> Counter[int]:
        """Never round in an empty circle."""
        reached = Counter({at: 1})
        ends = Counter(reached) if item.low == 0 else Counter[int]()
        for count in range(item.high or len(self.text) + 1):
            reached = self._after(item.item, reached, forward=item.high is None and count > 0)
            if not reached:
                break
            ends.update(reached)
        return ends


def most_ways(pattern: str) -> int:
    """The most ways in which the loop at the start of a pattern matches some repeated text."""
    expression = read(pattern)
    assert expression is not None
    loop = expression.options[0].items[0]
    words = ["".join(letters) for size in range(1, 7) for letters in product("ab", repeat=size)]
    return max(max(Ways(word * TIMES).of(loop, 0).values(), default=0) for word in words)


ATOMS = st.sampled_from(["a", "b", "[ab]"])
BODIES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["*", "+", "?", ""])).map(lambda p: f"(?:{p[0]}){p[1]}"),
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda p: f"(?:{p[0]}|{p[1]})"),
    ),
    max_leaves=4,
)


@given(BODIES)
@settings(max_examples=30, deadline=None)
def test_exponential_is_what_has_exponentially_many_ways(body: str) -> None:
    pattern = f"(?:{body})+c"
    expression = read(pattern)
    assert expression is not None
    many = most_ways(pattern) >= 2 ** (TIMES - 1)
    assert (exploding(expression) is not None) == many, most_ways(pattern)


@pytest.mark.parametrize(
    ("pattern", "part"),
    [
        ("x(a+)+y", "(a+)+"),
        ("(a|a)*b", "(a|a)*"),
        ("(a|ab|b)*c", "(a|ab|b)*"),
        ("(.*foo)*x", "(.*foo)*"),
        (r"(\w+\s*)+;", r"(\w+\s*)+"),
        ("((a+)?)*b", "((a+)?)*"),
        ("(x((a*)*b)y)", "(a*)*"),
        ("(?=(a+)+b)x", "(a+)+"),
        ("(a{1,3})+b", "(a{1,3})+"),
        ("(a+){10,}b", "(a+){10,}"),
        ("(a+){2,30}b", "(a+){2,30}"),
        ("(a(b?|c?))*d", "(a(b?|c?))*"),
        (r"(\d+|\w)*-", r"(\d+|\w)*"),
    ],
)
def test_the_repetition_is_named(pattern: str, part: str) -> None:
    expression = read(pattern)
    assert expression is not None
    found = exploding(expression)
    assert found is not None and pattern[found.start : found.end] == part


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+",  # nothing behind it can fail
        "(a+)+x*",
        "x(?=(a+)+)y",
        "(a++)+b",
        "((?>a+))+b",
        "(a+b)+c",
        r"(?:/[\w.-]+)+\.conf",
        ".*a.*b.*c.*d",  # many ways, but not exponentially many
        r"(\d{1,3}\.){3}x",
        r"(?:(?!b)[ab])*c",
        r"(\b\w+\b\s*)+;",
        "(" + "|".join(f"w{chr(97 + i)}x+" for i in range(20)) + ")*;",  # larger than is looked at
    ],
)
def test_no_other_is_named(pattern: str) -> None:
    expression = read(pattern)
    assert expression is not None
    assert exploding(expression) is None
