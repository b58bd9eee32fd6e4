"""Reading a pattern with the place of every part agrees with how `re` itself reads it."""

from __future__ import annotations

import re
import re._constants as op  # type: ignore[import-not-found]
import re._parser as re_parser  # type: ignore[import-not-found]
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.scenarios.traps import QUIET, TOLD

from opsdrill.scenarios.lint.expression import (
    LONGEST,
    Character,
    Choice,
    Dot,
    Group,
    Item,
    Position,
    Reference,
    Repeat,
    Sequence,
    Set,
    read,
)

KINDS = {op.ASSERT: "ahead", op.ASSERT_NOT: "not ahead"}
WRITTEN = {
    op.AT_BEGINNING: "^", op.AT_END: "$", op.AT_BEGINNING_STRING: r"\A",
    op.AT_END_STRING: r"\Z", op.AT_BOUNDARY: r"\b", op.AT_NON_BOUNDARY: r"\B",
}  # fmt: skip
MODES = {op.MAX_REPEAT: "greedy", op.MIN_REPEAT: "lazy", op.POSSESSIVE_REPEAT: "possessive"}


def ours(choice: Choice) -> list[object]:
    """A reading as nested lists; what `re` merges is merged."""
    if len(choice.options) == 1:
        return sequence(choice.options[0])
    return [("branch", *(tuple(sequence(option)) for option in choice.options))]


def sequence(option: Sequence) -> list[object]:
    return [made for item in option.items for made in part(item)]


def part(item: Item) -> Iterator[object]:
    match item:
        case Character():
            yield ("char", item.char)
        case Dot():
            yield "dot"
        case Set():
            yield "set"
        case Position():
            yield ("at", item.kind)
        case Reference():
            yield "reference"
        case Repeat():
            high = item.high
            yield (item.mode, item.low, high, *part_of_repeat(item.item))
        case Group(kind="plain", body=body):
            # Brackets that keep nothing vanish, unless they carry flags.
            bare = body.start - item.start == len("(?:")
            yield from ours(body) if bare else [("flags", *ours(body))]
        case Group():
            yield (item.kind, *ours(item.body))


def part_of_repeat(item: Item) -> list[object]:
    return list(part(item))


def theirs(tree: Any) -> list[object]:
    return [made for kind, value in tree for made in node(kind, value)]


def node(kind: Any, value: Any) -> Iterator[object]:
    if kind is op.LITERAL:
        yield ("char", chr(value))
    elif kind is op.ANY:
        yield "dot"
    elif kind in (op.IN, op.NOT_LITERAL):
        yield "set"
    elif kind is op.AT:
        yield ("at", WRITTEN[value])
    elif kind is op.GROUPREF:
        yield "reference"
    elif kind in MODES:
        low, high, body = value
        yield (MODES[kind], low, None if high is op.MAXREPEAT else high, *theirs(body))
    elif kind is op.BRANCH:
        yield ("branch", *(tuple(theirs(body)) for body in value[1]))
    elif kind is op.SUBPATTERN:
        number, _, _, body = value
        yield ("capture" if number is not None else "flags", *theirs(body))
    elif kind is op.ATOMIC_GROUP:
        yield ("atomic", *theirs(value))
    else:
        direction, body = value
        name = KINDS[kind].replace("ahead", "ahead" if direction > 0 else "behind")
        yield (name, *theirs(body))


ATOMS = st.sampled_from(
    [
        "a", "Z", "é", "7", " ", "-", "]", "}", "{x", "/", r"\.", r"\d", r"\W", r"\n", r"\x41",
        r"\u00e9", r"\012", "[a-z]", "[^]a]", r"[\]\\-]", "[.]", "[^x]", ".", r"\t", "#", "[]x]",
        "[^a-c]", "{,x}", "{}",
    ]
)  # fmt: skip
EDGES = st.sampled_from(["^", "$", r"\A", r"\Z", r"\b", r"\B"])
TIMES = st.sampled_from(
    ["*", "+", "?", "{2}", "{2,}", "{,3}", "{1,3}", "*?", "+?", "??", "{2}+", "*+"]
)
OPENINGS = st.sampled_from(
    ["(", "(?:", "(?=", "(?!", "(?P<name>", "(?>", "(?s:", "(?-i:", "(?#x)("]
)


def rows(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    grouped = st.tuples(OPENINGS, inner).map(lambda pair: f"{pair[0]}{pair[1]})")
    single = st.one_of(ATOMS, grouped)
    repeated = st.tuples(single, st.one_of(st.just(""), TIMES)).map("".join)
    return st.lists(st.one_of(repeated, EDGES), max_size=5).map("".join)


def choices(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    # Alternatives that begin differently and are longer than one: `re` merges all others.
    pair = st.tuples(rows(inner), rows(inner))
    return pair.map(lambda both: f"p1{both[0]}|q2{both[1]}")


PATTERNS = st.recursive(rows(st.just("x")), lambda s: st.one_of(rows(s), choices(s)), max_leaves=6)


@settings(deadline=None)
@given(st.tuples(st.sampled_from(["", "(?m)", "(?s)", "(?i)", "(?#c)(?a)"]), PATTERNS).map("".join))
def test_a_reading_is_that_of_re(pattern: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = re_parser.parse(pattern, re.IGNORECASE)
        except re.error:
            return
        re.compile(pattern, re.IGNORECASE)
    found = read(pattern)
    assert found is not None
    assert ours(found.body) == theirs(tree)
    assert found.flags == int(tree.state.flags) & ~int(re.UNICODE)


@pytest.mark.parametrize(
    "pattern",
    sorted({row.pattern for table in (TOLD, QUIET) for rows in table.values() for row in rows}),
    ids=ascii,
)
def test_every_pattern_of_the_fixtures_is_read(pattern: str) -> None:
    assert read(pattern) is not None


@settings(deadline=None)
@given(PATTERNS)
def test_every_part_stands_where_it_says(pattern: str) -> None:
    """A part's own text is read as that part alone."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern, re.IGNORECASE)
    except re.error:
        return
    found = read(pattern)
    assert found is not None
    for row in found.sequences():
        for item in row.items:
            text = pattern[item.start : item.end]
            alone = read(text)
            if isinstance(item, Reference) or alone is None:
                continue
            shape = alone.options[0].items
            assert len(shape) == 1 and type(shape[0]) is type(item), text


def test_free_spacing_and_comments_are_no_characters() -> None:
    found = read("(?x) a \\  # b|c\n [ ] | d{2} + ")
    assert found is None or found.flags & re.VERBOSE
    found = read("(?x) a \\  # b|c\n [ ] | d {2} ")
    assert found is not None and len(found.options) == 2
    first, second = found.options
    assert [item.char for item in first.items if isinstance(item, Character)] == ["a", " ", " "]
    assert isinstance(second.items[0], Repeat) and second.items[0].low == 2


@pytest.mark.parametrize("pattern", ["(?P<a>x)(?P=a)", r"(x)\1", "(x)(?(1)y|z)", r"(?<=a)b(?<!c)"])
def test_references_and_conditions_are_read(pattern: str) -> None:
    assert read(pattern) is not None


def test_very_long_patterns_are_passed_over() -> None:
    assert read("a" * LONGEST) is not None
    assert read("a" * (LONGEST + 1)) is None


def test_groups_nested_too_deep_are_passed_over() -> None:
    assert read("(" * 2000 + ")" * 2000) is None
