"""Which patterns the linear-time engine takes, and that the private parser is as it was."""

from __future__ import annotations

import string

import pytest

from opsdrill.patterns import compile_pattern
from opsdrill.patterns.linear import Linear
from opsdrill.patterns.sifted import BLOCK, MOST_FOREIGN, Alphabet, Sifted
from opsdrill.patterns.translation import NoTranslation, Translation, parse

ALL_LETTERS = string.ascii_letters + string.digits + "_"


@pytest.mark.parametrize(
    "text",
    [
        r"\b(reboot|shutdown|poweroff)\b",
        r"journalctl|/var/log/nginx",
        r"^\s*(sudo\s+)?apt(-get)?\s+install\b",
        r"(?s)a.*?b{2,3}",
        r"(?m)^x[^y]\Z",
        "(?-i:Foo)|ſ",
        "(a+)+$",
    ],
)
def test_what_rules_are_made_of_is_linear(text: str) -> None:
    """Guards the private parser of `re`: were it to change, these would be slow, not wrong."""
    assert compile_pattern(text).linear is not None


@pytest.mark.parametrize(
    "text",
    [
        *("(?=a)b", "(?!a)b", "(?<=a)b", "(?<!a)b"),
        *(r"(a)\1", "(a)?(?(1)b|c)", "(?>a)b", "a++", "a{2,3}+"),
        *("(?:a*)*", "(?:a|)+", "(?:a?){3}", r"(?:\b)*"),
        *(r"(?a:\S)", "(?u:a)", "a{1001}", "a{0,1001}", "(?:a{1000}){1000}"),
    ],
)
def test_what_may_differ_is_left_to_python(text: str) -> None:
    """When in doubt: the other path."""
    assert compile_pattern(text).linear is None


def test_a_program_too_large_is_left_to_python() -> None:
    """What cannot be ended from outside must be short: the size of a program is bounded."""
    with pytest.raises(NoTranslation):
        Linear("(?:" + "|".join(f"{n}.{{50}}x" for n in range(100)) + ")")


def test_no_text_of_the_pattern_is_passed_on() -> None:
    """Whatever the text holds, sets of numbers come out, so nothing in it can mean more."""
    translation = Translation(parse(r"Q[:alpha]\\E{,3}(?P<name>\.|é){2,}?"), Alphabet("é").codes)
    assert set(translation.text) <= set(r"\x0123456789abcdef[^]-(?:|){,}")


@pytest.mark.parametrize(
    ("text", "value", "left"),
    [
        ("a$", "a\n", True),
        ("a$", "a\nb", False),
        (r"a\Z", "a\n", False),
        ("(?m)a$", "a\n", False),
        (r"\Ba", "", True),
        (r"\ba", "", False),
        ("a", "é", False),
        (r"\ba", "é", False),
        (r"\b(?-i:" + ALL_LETTERS + ")", "é", True),
        (r"(?a)\b(?-i:" + ALL_LETTERS + ")", "é", False),
        (r"\b(?-i:" + ALL_LETTERS + ")", "–", False),
        ("a", "".join(map(chr, range(0x4E00, 0x4E00 + MOST_FOREIGN))), False),
        ("a", "".join(map(chr, range(0x4E00, 0x4E01 + MOST_FOREIGN))), True),
        ("a", "x" * (BLOCK + 1), False),
        ("a", "x\n" * BLOCK, False),
        (r"a.{50}b", "x\n" * 5_000_000, True),
    ],
)
def test_values_on_which_it_may_differ_are_left_over(text: str, value: str, left: bool) -> None:
    """`$` before a last line break, the empty value, more letters than there are, length."""
    linear = compile_pattern(text).linear
    assert linear is not None
    spans: list[tuple[int, int] | None] = [None]
    assert linear.search(Sifted([value]), spans) == ([0] if left else [])
