"""The bounded searcher finds what `re.search(pattern, value, re.IGNORECASE)` finds, always."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from opsdrill.errors import InvalidPattern
from opsdrill.patterns import BoundedSearcher, Pattern, Searched, Span, compile_pattern


@pytest.fixture(scope="module")
def searcher() -> Iterator[BoundedSearcher]:
    with BoundedSearcher(20.0) as one:
        yield one


def by_python(text: str, values: Sequence[str]) -> tuple[Span | None, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pattern = re.compile(text, re.IGNORECASE)
    return tuple(found.span() if (found := pattern.search(value)) else None for value in values)


def compiled(text: str) -> Pattern | None:
    try:
        return compile_pattern(text)
    except InvalidPattern:
        return None


UNITS = st.sampled_from(
    [
        *"abkKsSiI0_ -",
        *("é", "ı", "ſ", "\u212a", "İ", "ß", "ς", "𝒜", "\u0660", "\u00a0", "\u2028"),
        *(r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", r"\n", r"\r", r"\t", r"\x0b", r"\x1c", r"\0"),
        *("[ab]", "[^a]", r"[^\s]", "[a-k]", r"[\w-]", r"[^\n]", "[K-ſ]", "[^\u212a]", "[à-ö]"),
        *("[[:alpha:]]", "[]a]", "[.-a]", r"\.", ".", r"\\", "a{,3}", "{,3}", "a{2", "[^ı]"),
    ]
)
POSITIONS = st.sampled_from(["^", "$", r"\b", r"\B", r"\A", r"\Z"])
REPEATS = st.sampled_from(
    ["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{,2}", "{0}", "{2,}", "{2,3}?"]
)
POSSESSIVE = st.sampled_from(["*+", "++", "?+", "{1,2}+"])
GROUPS = st.sampled_from(
    ["(?:", "(", "(?i:", "(?-i:", "(?s:", "(?m:", "(?a:", "(?x:", "(?ms:", "(?s-i:"]
)
LOOKS = st.sampled_from(["(?=", "(?!", "(?<=", "(?<!", "(?>"])
FLAGS = st.sampled_from(["", "", "", "", "(?i)", "(?s)", "(?m)", "(?x)", "(?a)", "(?ms)", "(?u)"])


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """What the linear-time engine takes, for the most part."""
    return st.one_of(
        st.builds("{}{}".format, inner, inner),
        st.builds("{}{}{}".format, inner, inner, inner),
        st.builds("(?:{}|{})".format, inner, inner),
        st.builds("(?:{}|)".format, inner),
        st.builds("{}{})".format, GROUPS, inner),
        st.builds("(?:{}){}".format, inner, REPEATS),
    )


def _largest(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """All that the dialect has."""
    return st.one_of(
        _larger(inner),
        st.builds("{}{})".format, LOOKS, inner),
        st.builds("(?:{}){}".format, inner, POSSESSIVE),
        st.builds(r"({})\1".format, inner),
        st.builds("({})?(?(1){}|{})".format, inner, inner, inner),
    )


SMALLEST = UNITS | UNITS | POSITIONS
REGULAR = st.builds("{}{}".format, FLAGS, st.recursive(SMALLEST, _larger, max_leaves=8))
PATTERNS = st.builds("{}{}".format, FLAGS, st.recursive(SMALLEST, _largest, max_leaves=8))
PLAIN = st.text(alphabet="aabbkKsSiI0_ -\n\n\r\t\x0b\x0c\x1c\x1f\0\x7f~[:", max_size=10)
FOREIGN = st.text(
    alphabet="abkKsSiI \n\r\x1céıſ\u212aİßςΣ𝒜\u0660\u00a0\u2028\ud800\udc00", max_size=8
)
VALUES = st.lists(PLAIN | FOREIGN, min_size=1, max_size=12)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=REGULAR | REGULAR | PATTERNS, values=VALUES)
def test_finds_what_python_finds(searcher: BoundedSearcher, text: str, values: list[str]) -> None:
    """Faster engines must never differ: same spans for any pattern and any values."""
    assume(len(text) <= 80)
    pattern = compiled(text)
    assume(pattern is not None)
    assert pattern is not None
    assert searcher.search(pattern, values) == Searched(by_python(text, values))


EDGES = [
    (r"\w+", ["é", "a", "_", "٣", "日本", "-"]),
    (r"\d", ["٣", "3", "x", "²"]),
    (r"\s", ["\x0b", "\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\u00a0", "\u2028", "\0", "\x0c"]),
    (r"\S+", ["\x1c\x1d", "a\x1fb", " \x0b"]),
    (r"\bx", ["éx", "-x", "x", "\x1cx", "ux", "\u00a0x"]),
    (r"\Bx", ["éx", "-x", "x", "ux"]),
    (r"\B", ["", "a", "ab", " ", "\n"]),
    (r"\b", ["", "a", " a", "é"]),
    ("i", ["ı", "İ", "I", "i", "x"]),
    ("ı", ["i", "I", "ı", "İ", "x"]),
    ("s", ["ſ", "S", "s", "ß"]),
    ("ſ", ["s", "S", "ſ"]),
    ("k", ["\u212a", "K", "k"]),
    ("\u212a", ["k", "K", "\u212a", "x"]),
    ("ss", ["ß", "ẞ", "SS", "ſſ"]),
    ("σ", ["ς", "Σ", "σ"]),
    (r"a\vb", ["a\x0bb", "avb"]),
    ("end$", ["end", "end\n", "end\n\n", "END\r\n", "end\nx", "bend\n"]),
    ("$", ["", "\n", "a", "a\n", "a\n\n"]),
    (r"end\Z", ["end", "end\n", "x\nend"]),
    ("^b", ["a\nb", "b", "\nb"]),
    ("(?m)^b$", ["a\nb", "b\nc", "b\r\n", "\nb\n", "a\nb\nc"]),
    ("(?m)^", ["", "\n", "a\n"]),
    ("(?m)$", ["", "\n", "a\nb", "é\n"]),
    ("a{,3}", ["aaaa", "a{,3}", "", "b"]),
    ("a{,3", ["a{,3", "aaa"]),
    ("[[:alpha:]]", ["a]", ":]", "[]", "x]", "a"]),
    ("[[:alpha:]]+", ["a]]", "a", "p]", "éa]]"]),
    (r"(i)\1", ["ii", "iI", "iı", "ıi", "İi", "i"]),
    (r"(\w)\1", ["Aa", "ſs", "kK", "ab"]),
    ("(?i)FOO", ["foo", "fOo"]),
    ("(?s)a.b", ["a\nb", "a\rb", "axb"]),
    ("a.b", ["a\nb", "a\rb", "axb", "a\0b", "aéb", "a\u2028b"]),
    ("(?x) a b # c", ["ab", "a b"]),
    (r"(?a)\w\b", ["é", "aé", "a"]),
    (r"(?a:\S)", ["\x1fA", "\x1f"]),
    ("(?a)k", ["\u212a", "K"]),
    ("(?-i:Foo)", ["foo", "Foo", "xFoo"]),
    ("(?-i:k)", ["\u212a", "K", "k"]),
    ("(?-i:a)b", ["aB", "AB"]),
    ("a|ab", ["ab", "xab"]),
    ("(?:a|ab)(?:c|bcd)", ["abcd"]),
    ("a*?b", ["aab", "b"]),
    ("x*", ["", "yx", "x"]),
    ("(?:a*)+", ["aab", "b", ""]),
    ("(?:a|b*)*c", ["aabbc", "c"]),
    ("a++b", ["aab", "ab"]),
    ("(?>a|ab)c", ["abc", "ac"]),
    ("a{1001}", ["a" * 1001, "a" * 1000]),
    ("(?:a{30}){30}", ["a" * 900, "a" * 899]),
    ("[^x]", ["\n", "x", "\x1c", "é"]),
    ("a[^b]c", ["a\nc", "abc"]),
    (r"\n", ["a\nb", "ab", "\n"]),
    (r"a\s*b", ["a\n\nb", "a", "b"]),
    (r"\x00", ["a\0b", "ab"]),
    ("é", ["É", "é", "e"]),
    ("[à-ö]", ["É", "é", "e"]),
    ("\ud800", ["a\ud800", "\ud800\udc00", "𐀀"]),
    ("𐐀", ["𐐨", "𐐀"]),
    (r"[\U00010000-\U0010ffff]", ["a𐐨", "a"]),
    (r"(?=.*\d)\w{3}", ["ab1", "abc", "x ab1"]),
    (r"(?<!un)mount", ["umount", "unmount", "mount"]),
    ("(a)?(?(1)b|c)", ["ab", "c", "b"]),
]


@pytest.mark.parametrize(("text", "values"), EDGES, ids=[repr(edge[0]) for edge in EDGES])
def test_edges_of_the_dialect(searcher: BoundedSearcher, text: str, values: list[str]) -> None:
    r"""Where engines differ: \w \d \s \b, case folding, \x0b \x1c-\x1f, `$`, `{,3}`, flags."""
    found = searcher.search(compile_pattern(text), values)
    assert found == Searched(by_python(text, values))
    for value, span in zip(values, found.spans, strict=True):  # whatever stands beside it
        assert searcher.search(compile_pattern(text), [value]).spans == (span,)


def test_spans_count_code_points(searcher: BoundedSearcher) -> None:
    found = searcher.search(compile_pattern("b+"), ["äöbb", "𝒜b", "xxb"])
    assert found.spans == ((2, 4), (1, 2), (2, 3))


def test_no_value_is_joined_to_another(searcher: BoundedSearcher) -> None:
    """A match never runs from one value into the next, whatever stands at their ends."""
    values = ["rm", "-rf", "", "a\n", "\nb", "x", "\ny", "é", "z"]
    for text in (r"rm\s*-rf", r"a\s+b", r"[^q]{4}", r"x\W*y", "(?s).{5}", r"\Ay", r"x\Z", "(?m)^y"):
        assert searcher.search(compile_pattern(text), values).spans == by_python(text, values)


@pytest.mark.parametrize("text", ["needle", r"^needle$", r"\bneedle\b", r"(?=n)needle", "n.*e$"])
def test_many_values_of_every_kind(searcher: BoundedSearcher, text: str) -> None:
    """Blocks and batches end in the middle of the values, and change nothing."""
    kinds = ["hay {}", "needle", "a\nneedle {}", "ä needle", "", "needle\n", "x" * 3000 + " needle"]
    values = tuple(kinds[n % len(kinds)].format(n) for n in range(5000))
    assert searcher.search(compile_pattern(text), values) == Searched(by_python(text, values))
    assert searcher.search(compile_pattern(text), values[:100]).spans == by_python(
        text, values[:100]
    )


def test_values_that_changed_are_searched_anew(searcher: BoundedSearcher) -> None:
    """The searcher remembers values for the next pattern only where they cannot change."""
    values = ["aaa"]
    pattern = compile_pattern("b")
    assert searcher.search(pattern, values).spans == (None,)
    values[0] = "b"
    assert searcher.search(pattern, values).spans == ((0, 1),)


def test_no_values_no_spans(searcher: BoundedSearcher) -> None:
    assert searcher.search(compile_pattern("a"), []) == Searched(())


def test_several_threads_may_share_a_searcher(searcher: BoundedSearcher) -> None:
    values = [f"value {n} é" if n % 2 else f"value {n}" for n in range(300)]

    def search(number: int) -> bool:
        text = rf"{number}\b(?!x)" if number % 2 else rf"{number}\b"
        return searcher.search(compile_pattern(text), values).spans == by_python(text, values)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(search, range(40)))
