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
    Choice,
    Group,
    Item,
    Repeat,
    Sequence,
    Set,
    read,
)

TIMES = 9
"""How often a text is repeated: two ways each time are 512."""


def ways(item: Item, text: str, starts: Counter[int]) -> Counter[int]:
    """In how many ways each place of the text is reached, from places reached in so many ways."""
    match item:
        case Character() | Set():
            accepted = item.char if isinstance(item, Character) else item.accepted("ab")
            return Counter(
                {at + 1: n for at, n in starts.items() if text[at : at + 1] in [*accepted]}
            )
        case Group():
            return either(item.body, text, starts)
        case Repeat():
            ends = Counter(starts) if item.low == 0 else Counter[int]()
            reached, most = starts, item.high or len(text) + 1
            for count in range(1, most + 1):
                reached = step(item.item, text, reached)
                if count >= item.low:
                    ends.update(reached)
            return ends
    raise AssertionError(item)


def step(item: Item, text: str, starts: Counter[int]) -> Counter[int]:
    """As `ways`, without going round in an empty circle."""
    found = Counter[int]()
    for at, count in starts.items():
        for end, more in ways(item, text, Counter({at: 1})).items():
            if end > at:
                found[end] += count * more
    return found


def either(choice: Choice, text: str, starts: Counter[int]) -> Counter[int]:
    found = Counter[int]()
    for option in choice.options:
        found.update(row(option, text, starts))
    return found


def row(option: Sequence, text: str, starts: Counter[int]) -> Counter[int]:
    for item in option.items:
        starts = ways(item, text, starts)
    return starts


def most_ways(pattern: str) -> int:
    """The most ways in which the loop at the start of a pattern matches some repeated text."""
    expression = read(pattern)
    assert expression is not None
    loop = expression.options[0].items[0]
    words = ["".join(letters) for size in (1, 2, 3, 4) for letters in product("ab", repeat=size)]
    return max(
        max(ways(loop, before + word * TIMES, Counter({0: 1})).values(), default=0)
        for word in words
        for before in ("", "a", "b")
    )


ATOMS = st.sampled_from(["a", "b", "[ab]", "ab", "ba"])
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
@settings(max_examples=150, deadline=None)
def test_exponential_is_what_has_exponentially_many_ways(body: str) -> None:
    pattern = f"(?:{body})+c"
    expression = read(pattern)
    assert expression is not None
    many = most_ways(pattern) >= 2**TIMES
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
