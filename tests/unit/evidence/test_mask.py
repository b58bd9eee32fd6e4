"""The mask: every secret becomes `[masked:NAME]`, equal ones alike, and nothing else changes."""

from __future__ import annotations

import base64
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsdrill.evidence.forms import forms
from opsdrill.evidence.mask import SHORTEST, Mask

PASSWORD = "hunter2-X9"
MASK = Mask([("DB_PASSWORD", PASSWORD), ("API_KEY", "s3cr3t/+key"), ("LONG", PASSWORD + "-long")])
TOKEN = "ghp_" + "A1b2C3d4E5f6" * 3


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"mysql -p{PASSWORD} shop", "mysql -p[masked:DB_PASSWORD] shop"),
        (f"{PASSWORD}{PASSWORD}", "[masked:DB_PASSWORD][masked:DB_PASSWORD]"),
        (f"{PASSWORD}-long", "[masked:LONG]"),
        (f"{PASSWORD}-lon", "[masked:DB_PASSWORD]-lon"),
        (f"ö {PASSWORD} ü\ud800", "ö [masked:DB_PASSWORD] ü\ud800"),
        ("?key=s3cr3t%2F%2Bkey&x", "?key=[masked:API_KEY]&x"),
        (json.dumps({"k": "s3cr3t/+key"}), '{"k": "[masked:API_KEY]"}'),
        (f"export T={TOKEN};", "export T=[masked:github-token];"),
        (f"Authorization: Bearer {PASSWORD}", "Authorization: Bearer [masked:DB_PASSWORD]"),
        (f"https://app:{PASSWORD}@db/x", "https://app:[masked:DB_PASSWORD]@db/x"),
        ("https://app:other-pw9@db/x", "https://app:[masked:url-password]@db/x"),
        ("nothing to see", "nothing to see"),
        ("", ""),
    ],
)
def test_secrets_are_masked(text: str, masked: str) -> None:
    assert MASK.text(text) == masked


def test_what_holds_no_secret_is_the_very_same_object() -> None:
    text, data = "systemctl restart nginx", b"\xff\x00 binary"
    assert MASK.text(text) is text
    assert MASK.data(data) is data


def test_bytes_of_any_kind_are_masked() -> None:
    assert (
        MASK.data(b"\xff\x00" + PASSWORD.encode() + b"\xfe") == b"\xff\x00[masked:DB_PASSWORD]\xfe"
    )


def test_of_two_names_for_one_value_the_first_is_shown() -> None:
    mask = Mask([("B", "the-value"), ("A", "the-value")])
    assert mask.text("the-value") == "[masked:B]"


def test_one_name_may_have_two_values() -> None:
    mask = Mask([("PW", "the-old-one"), ("PW", "the-new-one")])
    assert mask.text("the-old-one the-new-one") == "[masked:PW] [masked:PW]"


def test_a_short_secret_is_not_masked_and_said_to_be_none() -> None:
    """Else every word with an `a` in it would become unreadable."""
    mask = Mask([("PIN", "123"), ("OK", "1234")])
    assert mask.text("123 1234") == "123 [masked:OK]"
    [warning] = mask.warnings
    assert "'PIN' has fewer than 4 characters" in warning
    assert "123" not in warning


@pytest.mark.parametrize("value", ["masked", "DB_PASS", "[masked:", "token", "[masked:OTHER]"])
def test_a_secret_that_masks_are_made_of_is_not_masked(value: str) -> None:
    """It would be found in every `[masked:NAME]`, for ever."""
    mask = Mask([("DB_PASS", value), ("OTHER", "the-other-one")])
    assert mask.text("the-other-one") == "[masked:OTHER]"
    assert len(mask.warnings) == 1


def test_what_looks_masked_but_is_not_hides_nothing() -> None:
    """An agent that writes `[masked:...]` around a secret does not get it through."""
    assert PASSWORD not in MASK.text(f"[masked:{PASSWORD}]")
    assert PASSWORD not in MASK.text(f"[masked:X{PASSWORD}] [masked:DB_PASSWORD]{PASSWORD}")


WORDS = st.lists(
    st.sampled_from(
        [PASSWORD, PASSWORD[:5], PASSWORD[5:], "s3cr3t/+key", TOKEN, TOKEN[:20], "-long", " ", "\n",
         "[masked:DB_PASSWORD]", "[masked:", "]", "AKIA", "ABCDEFGHIJKLMNOP", "Bearer ", "x", "ö",
         base64.b64encode(PASSWORD.encode()).decode(), "://a:", "@b", "\ud800", "eyJ", "."]
    ),
    max_size=14,
).map("".join)  # fmt: skip


@given(WORDS)
def test_masking_again_changes_nothing(text: str) -> None:
    once = MASK.text(text)
    assert MASK.text(once) == once


@given(WORDS)
def test_no_form_of_a_secret_is_left(text: str) -> None:
    masked = MASK.text(text)
    for value in (PASSWORD, "s3cr3t/+key"):
        assert not any(form in masked for form in forms(value) if len(form) >= SHORTEST)


@given(st.text(min_size=6, max_size=40), WORDS)
def test_any_value_is_masked_anywhere(value: str, around: str) -> None:
    mask = Mask([("V", value)])
    if not mask.warnings:
        assert value not in mask.text(around + value + around)


@given(st.text(alphabet="ab \n[]:\\x", max_size=60))
def test_text_without_a_secret_stays(text: str) -> None:
    assert MASK.text(text) == text


# patterns


@pytest.mark.parametrize(
    ("pattern", "masked"),
    [
        (rf"-p{PASSWORD}\b", r"-p\[masked:DB_PASSWORD\]\b"),
        (r"hunter2\-X9", r"\[masked:DB_PASSWORD\]"),
        (r"key=s3cr3t/\+key$", r"key=\[masked:API_KEY\]$"),
        (r"s3cr3t\/\+key", r"\[masked:API_KEY\]"),
        (TOKEN, r"\[masked:github-token\]"),
        (r"\[masked:DB_PASSWORD\]", r"\[masked:DB_PASSWORD\]"),
        (r"AKIA[0-9A-Z]{16}|gh[pousr]_\w{36}", r"AKIA[0-9A-Z]{16}|gh[pousr]_\w{36}"),
    ],
)
def test_a_pattern_finds_what_is_masked(pattern: str, masked: str) -> None:
    assert MASK.pattern(pattern) == masked
    assert MASK.pattern(masked) == masked


@given(st.text(min_size=4, max_size=20), st.text(max_size=5), st.text(max_size=5))
def test_a_pattern_with_a_secret_finds_it_before_and_after(
    value: str, before: str, after: str
) -> None:
    """Rules judge masked evidence as they would have judged the true one."""
    mask = Mask([("V", value)])
    pattern = f"{re.escape(before)}{re.escape(value)}{re.escape(after)}"
    text = f"{before}{value}{after}"
    assert re.search(pattern, text)
    if not mask.warnings and value not in before + after:
        assert re.search(mask.pattern(pattern), mask.text(text))


# text that was cut


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"a {PASSWORD[:6]}", "a [masked:"),
        (f"a {PASSWORD[:3]}", f"a {PASSWORD[:3]}"),
        (f"a {TOKEN[:12]}", "a [masked:github-token]"),
        ("just words", "just words"),
        (f"whole {PASSWORD}", "whole [masked:DB_PASSWORD]"),
    ],
)
def test_a_secret_half_at_the_end_of_cut_text(text: str, masked: str) -> None:
    got = MASK.text(text, cut=True)
    assert got.startswith(masked)
    assert MASK.text(got, cut=True) == got
    assert MASK.text(text).startswith("a " if text.startswith("a ") else masked)


def test_a_secret_half_at_the_beginning_of_what_goes_on() -> None:
    assert MASK.text(f"{PASSWORD[4:]} b", resumed=True) == "[masked:DB_PASSWORD] b"
    assert MASK.text("X9 b", resumed=True) == "X9 b"


def test_output_that_says_what_was_left_out() -> None:
    """The parts end and begin where something is missing: in the middle of a secret, maybe."""
    text = f"one {PASSWORD[:7]}\n[123 characters left out]\n{PASSWORD[5:]} two\n[9 bytes left out]"
    masked = MASK.output(text)
    assert re.fullmatch(
        r"one \[masked:\w+\]\n\[123 characters left out\]\n\[masked:\w+\] two"
        r"\n\[9 bytes left out\]",
        masked,
    ), masked
    assert MASK.output(masked) == masked
    assert MASK.output(f"x {PASSWORD}") == "x [masked:DB_PASSWORD]"


# names


def test_names_of_what_is_in_a_text() -> None:
    assert MASK.names(f"{TOKEN} {PASSWORD} {PASSWORD}") == ("github-token", "DB_PASSWORD")
    assert MASK.names("nothing") == ()
    assert MASK.names("[masked:DB_PASSWORD]") == ()
    assert MASK.names(r"a hunter2\-X9", pattern=True) == ("DB_PASSWORD",)


def test_texts_that_are_kept_stay_where_they_are_all() -> None:
    mask = MASK.keeping([PASSWORD])
    assert mask.text(PASSWORD) == PASSWORD
    assert mask.text(f" {PASSWORD}") == " [masked:DB_PASSWORD]"
    assert MASK.text(PASSWORD) == "[masked:DB_PASSWORD]"
