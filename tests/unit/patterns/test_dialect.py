"""What a pattern may be: exactly what Python 3.11's `re` compiles, and nothing empty."""

from __future__ import annotations

import re
import threading
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsdrill.errors import InvalidPattern
from opsdrill.patterns import Pattern, compile_pattern
from opsdrill.patterns.pattern import LONGEST, refuse_newer


@pytest.mark.parametrize(
    ("text", "message", "position"),
    [
        ("", "an empty pattern matches every value", None),
        ("foo(", "missing ), unterminated subpattern", 3),
        ("a)", "unbalanced parenthesis", 1),
        ("*a", "nothing to repeat", 0),
        ("{,3}", "nothing to repeat", 0),
        ("ab[c", "unterminated character set", 2),
        ("a{2,1}", "min repeat greater than max repeat", 2),
        ("ä\\", "bad escape (end of pattern)", 1),
        (r"(?P<n>a)(?P<n>b)", "redefinition of group name", 12),
        (r"\1", "invalid group reference 1", 1),
        (r"(?<=a*)b", "look-behind requires fixed-width pattern", None),
        (r"ab\z", r"bad escape \z", 2),
        (r"a(?i)b", "global flags not at the start of the expression", 1),
        ("(?a)(?u)b", "ASCII and UNICODE flags are incompatible", None),
        ("(?L)b", "cannot use 'L' flag with a str pattern", 3),
        ("a{99999999999999999999}", "the repetition number is too large", None),
        ("(" * 5000 + ")" * 5000, "its groups are nested too deeply", None),
        ("a" * (LONGEST + 1), f"a pattern may have at most {LONGEST} characters", LONGEST),
        (r"[\u0000-\uffff]" * 500, "its sets name 32768000 characters", None),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_refused_with_the_position_of_the_fault(
    text: str, message: str, position: int | None
) -> None:
    """A pattern that is empty or does not compile is refused, with the position of the fault."""
    with pytest.raises(InvalidPattern) as caught:
        compile_pattern(text)
    assert message in caught.value.message
    assert caught.value.position == position


@pytest.mark.parametrize(
    ("text", "position"),
    [(r"a\z", 1), (r"(?x) a \z # \Z", 7), (r"\\\z", 2), (r"[\p]", 1), (r"(?#\z)\z", 6)],
)
def test_syntax_that_came_after_python_3_11_is_refused(text: str, position: int) -> None:
    r"""`\z` compiles from Python 3.14 on; the dialect stays that of 3.11."""
    with pytest.raises(InvalidPattern, match="bad escape") as caught:
        refuse_newer(text)
    assert caught.value.position == position


@pytest.mark.parametrize("text", [r"(?#\z)a", "(?x)a # \\z\nb", r"\\z", r"\Z\A\b\t\x41\u0041"])
def test_a_backslash_in_a_comment_is_no_escape(text: str) -> None:
    re.compile(text)
    compile_pattern(text)
    refuse_newer(text)


@pytest.mark.parametrize("text", ["[[:alpha:]]", "[a&&b]", "[a||b]", "(a)(?(01)b|c)"])
def test_what_python_only_warns_of_is_part_of_the_dialect(text: str) -> None:
    """Neither refused nor heard of; the next warning of somebody else is heard."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        pattern = compile_pattern(text)
        _ = pattern.linear
        assert heard == []
        warnings.warn("mine", stacklevel=1)
        assert len(heard) == 1


def test_warnings_are_back_after_many_threads_compiled() -> None:
    before = list(warnings.filters)
    threads = [
        threading.Thread(
            target=lambda n=number: [compile_pattern(f"[[a]{n}{i}") for i in range(20)]
        )
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(warnings.filters) == before


def test_patterns_are_equal_when_their_text_is() -> None:
    assert compile_pattern("a") == compile_pattern("a")
    assert hash(compile_pattern("a")) == hash(Pattern("a"))
    assert compile_pattern("a") != compile_pattern("A")
    assert compile_pattern("a").text == "a"


def test_groups_may_be_nested_as_deep_as_python_lets_them() -> None:
    text = "(" * 200 + "[a-b]" + ")" * 200
    re.compile(text)
    compile_pattern(text)


def _refused_by_python(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(text, re.IGNORECASE)
    except (re.error, ValueError, OverflowError, RecursionError):
        return True
    return False


@given(st.text(alphabet="ab\\[](){}|*+?^$.-,:=!<>Pimsxauz019N\n#é", max_size=12))
def test_refused_exactly_where_python_refuses(text: str) -> None:
    """Any text is a pattern or InvalidPattern, never another exception, and as `re` decides."""
    try:
        compile_pattern(text)
    except InvalidPattern:
        assert not text or _refused_by_python(text)
    else:
        assert not _refused_by_python(text)
