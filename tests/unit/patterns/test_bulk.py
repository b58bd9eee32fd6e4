"""Many patterns searched together find what `re.search` finds with each of them, value by value."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.patterns.test_searching import (
    EDGES,
    FOREIGN,
    PATTERNS,
    PLAIN,
    REGULAR,
    by_python,
    compiled,
)

from opsdrill.patterns import BoundedSearcher, Found, Pattern, Searched, Span, compile_pattern
from opsdrill.patterns import net as nets
from opsdrill.patterns.bulk import Bulk
from opsdrill.patterns.net import Net, Strand
from opsdrill.patterns.searcher import OneByOne, prepare
from opsdrill.patterns.sifted import BLOCK

SHOWN = 3
VALUES = st.lists(PLAIN | PLAIN.map(lambda text: text.replace("\n", "")) | FOREIGN, max_size=12)


@pytest.fixture(scope="module")
def searcher() -> Iterator[BoundedSearcher]:
    with BoundedSearcher(20.0) as one:
        yield one


def expected(text: str, values: Sequence[str]) -> Found:
    spans = by_python(text, values)
    hits = [(place, span) for place, span in enumerate(spans) if span is not None]
    return Found(len(hits), tuple(hits[:SHOWN]))


def check(searcher: BoundedSearcher, texts: Sequence[str], *values: Sequence[str]) -> None:
    searches = searcher.prepare([compile_pattern(text) for text in texts])
    for some in values:  # the same patterns again and again, as characters become known
        wanted = tuple(expected(text, some) for text in texts)
        assert searches.search(some, SHOWN) == wanted


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(texts=st.lists(REGULAR | PATTERNS, min_size=1, max_size=6), first=VALUES, second=VALUES)
def test_finds_what_python_finds(
    searcher: BoundedSearcher, texts: list[str], first: list[str], second: list[str]
) -> None:
    """Counts and spans are those of each pattern in each value alone, whatever stands beside."""
    texts = [text for text in texts if len(text) <= 80 and compiled(text) is not None]
    check(searcher, texts, first, second, first)


def test_edges_of_the_dialect_together(searcher: BoundedSearcher) -> None:
    """All patterns where engines differ, on all values where they do, at once."""
    values = [value for _, some in EDGES for value in some]
    texts = [text for text, _ in EDGES]
    check(searcher, texts, values, [value for value in values if value.isascii()])
    for value in values:
        check(searcher, texts, [value])


@pytest.mark.parametrize("extra", ["", "é", "\n", "a\n", "x" * (BLOCK + 1), "\0é", "𝒜\0", "\ufffe"])
def test_a_value_of_another_kind_changes_nothing(searcher: BoundedSearcher, extra: str) -> None:
    """Empty ones, long ones, line breaks and NUL: the others are found as before."""
    values = ["needle", "a needle b", "hay", "needle" + extra, extra, extra + "needle", "needle"]
    texts = [
        "needle",
        "^needle$",
        r"\bneedle\b",
        "(?=n)needle",
        "n.*e$",
        "(?m)^needle$",
        r"\W",
        "$",
    ]
    check(searcher, texts, values, values[:3])


def test_values_of_many_blocks(searcher: BoundedSearcher) -> None:
    """A text that is cut into blocks is counted as one."""
    values = [f"{'x' * 900} {n}" + ("é" if n % 3 else "") + "\n" * (n % 2) for n in range(2000)]
    check(searcher, ["7$", "x 1", r"\b19\d\d\b", "(?<=x )5", "zzz"], values)


def test_more_scripts_than_bytes(searcher: BoundedSearcher) -> None:
    """Characters that no pattern tells apart share a byte, however many there are."""
    values = [chr(code) + "x" for code in range(0x80, 0x3000, 7)]
    check(searcher, [r"^\wx", r"\Wx", r"\dx", "éx", r"[а-я]x", r"\sx"], values, ["".join(values)])


def test_characters_that_stand_for_others_are_not_taken_for_them(
    searcher: BoundedSearcher,
) -> None:
    """The codes of control characters are lent to frequent signs; the characters come too."""
    controls = [f"a{chr(code)}b" for code in range(0x80, 0xA0)]
    signs = [f"a{sign}b" for sign in "–→✓€абв漢字"]
    texts = [r"a\wb", r"a\Wb", r"a\sb", "a[–€]b", "a[\x80-\x84]b", "бв?"]
    check(searcher, texts, signs, controls, signs + controls, ["–\x80", "\x81→", "é\x82"], signs)


def test_characters_that_are_all_told_apart(searcher: BoundedSearcher) -> None:
    """There are not bytes enough for them all: then each pattern is searched alone."""
    letters = [chr(code) for code in range(0x4E00, 0x4E80)]
    check(searcher, letters, letters, ["a", "b"])


def test_nothing_to_search(searcher: BoundedSearcher) -> None:
    assert searcher.prepare([]).search(["a"], SHOWN) == ()
    assert searcher.prepare([compile_pattern("a")]).search([], SHOWN) == (Found(),)


def test_out_of_budget_names_the_values() -> None:
    """Only where the pattern may be at all; other patterns and values go on."""
    hang = "a" * 40 + "!"
    with BoundedSearcher(0.2) as searcher:
        searches = searcher.prepare([compile_pattern(r"(a+)+\1$"), compile_pattern("a!")])
        found = searches.search(["b", hang, "aa", "é" + hang, "a"], SHOWN)
    assert found == (
        Found(1, ((2, (0, 2)),), (1, 3)),
        Found(2, ((1, (39, 41)), (3, (40, 42)))),
    )


def test_only_values_in_which_it_may_be_are_left_to_python(searcher: BoundedSearcher) -> None:
    """Look-around and back-references cost nothing where their loose form is not found."""
    asked: list[Sequence[str]] = []

    def plain(pattern: Pattern, values: Sequence[str]) -> Searched:
        asked.append(values)
        return Searched(by_python(pattern.text, values))

    values = ["mount /srv", "unmount", "ls", "umount -l\n", "größe", "mounté"]
    found = Bulk([compile_pattern("(?<!un)mount"), compile_pattern(r"mount.*$")], plain)
    assert [each.count for each in found.search(values, SHOWN)] == [3, 4]
    assert sorted(asked, key=len, reverse=True) == [
        ["mount /srv", "unmount", "umount -l\n", "mounté"],
        ["umount -l\n"],
    ]


def test_a_set_that_says_nothing_for_want_of_memory_is_not_believed() -> None:
    """The engine reports no match then; a pattern that is always there tells the two apart."""
    strands = _strands(["(a|b)*c[ab]{6}d", "zzz"])
    starved = Net(strands)
    for each in starved._sets:
        each._match = lambda text: []
    assert starved.touched(b"abcabababd") == [0, 1]


@pytest.mark.parametrize("memory", [1, 300, 3000, 30_000])
def test_sets_without_memory_are_done_without(
    searcher: BoundedSearcher, monkeypatch: pytest.MonkeyPatch, memory: int
) -> None:
    """A set that the engine refuses to make, or cannot run, changes no result."""
    monkeypatch.setattr(nets, "SET_MEMORY", memory)
    texts = [rf"x{n}.{{{n % 7}}}\w+y" for n in range(40)]
    values = [f"x{n} {'ab' * (n % 5)}y" for n in range(60)]
    check(searcher, texts, values, ["é" + value for value in values])


def _strands(texts: Sequence[str]) -> list[Strand]:
    linears = [compile_pattern(text).linear for text in texts]
    return [Strand(linear.lines, exact=True) for linear in linears if linear is not None]


def test_thousands_of_patterns() -> None:
    """Ten thousand rules end in bounded time and memory, and are told apart."""
    patterns = [Pattern(rf"\bapp-{n}\b|^{n}$") for n in range(10_000)]
    values = ("systemctl restart app-77", "app-9999", "5", "é app-77", "nothing")
    begin = time.monotonic()
    with BoundedSearcher() as searcher:
        found = searcher.prepare(patterns).search(values, SHOWN)
    assert {number: each.count for number, each in enumerate(found) if each.count} == {
        77: 2, 9999: 1, 5: 1
    }  # fmt: skip
    assert time.monotonic() - begin < 300, "a hang bound, no benchmark"


class PlainSearcher:
    """One that knows nothing of many patterns."""

    seconds = 1.0

    def search(self, pattern: Pattern, values: Sequence[str]) -> Searched:
        found = [re.search(pattern.text, value, re.IGNORECASE) for value in values]
        spans: tuple[Span | None, ...] = tuple(one.span() if one else None for one in found)
        return Searched(spans)


def test_any_searcher_can_be_prepared(searcher: BoundedSearcher) -> None:
    patterns = [compile_pattern("a"), compile_pattern("(?=b)b")]
    values = ("ab", "b", "é a")
    by_hand = prepare(patterns, PlainSearcher())
    assert isinstance(by_hand, OneByOne)
    assert by_hand.search(values, SHOWN) == prepare(patterns, searcher).search(values, SHOWN)
