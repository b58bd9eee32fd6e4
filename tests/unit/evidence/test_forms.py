"""The ways of writing a secret: what programs really make of it is among them."""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
import subprocess
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsdrill.evidence.forms import forms, in_a_pattern

VALUE = "p'a\"s$s w/ö&rd\\1"
TEXT = st.text(min_size=8, max_size=30).filter(lambda text: "\0" not in text)


@pytest.mark.parametrize(
    "written",
    [
        VALUE,
        json.dumps({"a": VALUE}),
        json.dumps({"a": VALUE}, ensure_ascii=False),
        json.dumps(json.dumps({"a": VALUE})),
        json.dumps(VALUE).replace("/", "\\/"),
        repr({"a": VALUE}),
        shlex.join(["mysql", f"-p{VALUE}"]),
        "'" + VALUE.replace("'", "'\\''") + "'",
        html.escape(VALUE),
        quote(VALUE),
        quote(VALUE, safe=""),
        quote_plus(VALUE),
        urlencode({"pw": VALUE}),
        quote(VALUE, safe="").lower().replace("w%2fö", "w%2fö"),
        base64.b64encode(VALUE.encode()).decode(),
        base64.urlsafe_b64encode(VALUE.encode()).decode(),
        VALUE.encode().hex(),
        VALUE.encode().hex().upper(),
    ],
)
def test_a_value_is_known_however_it_is_written(written: str) -> None:
    assert any(form in written for form in forms(VALUE)), written


@pytest.mark.parametrize(
    "command",
    [
        'printf %q "$S"',
        "printf '%s' \"$S\" | base64 -w0",
        "printf '%s\\n' \"$S\" | base64 -w0",
        "printf 'user:%s' \"$S\" | base64 -w0",
        "printf 'ab%s\\n' \"$S\" | base64 -w0",
        "printf '%s' \"$S\" | od -An -v -tx1 | tr -d ' \\n'",
        "declare -p S",
        'S="$S" bash -xc \': "$S"\' 2>&1',
        "export -p | grep ' S='",
    ],
)
def test_what_a_shell_makes_of_a_value_is_known(command: str) -> None:
    value = "pa s$w'o\"rd\\1"
    done = subprocess.run(
        ["/bin/bash", "-c", command], env={"S": value}, capture_output=True, text=True, check=True
    )
    assert any(form in done.stdout for form in forms(value)), done.stdout


@given(st.binary(max_size=9), TEXT, st.binary(max_size=9))
def test_base64_is_known_wherever_the_value_stands(before: bytes, value: str, after: bytes) -> None:
    data = before + value.encode("utf-8", "surrogatepass") + after
    for written in (base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode()):
        assert any(form in written for form in forms(value))


def test_line_ends_and_long_lines() -> None:
    """A key of several lines is known also where each line was indented or made CRLF."""
    value = "first line of the key\nsecond line of the key\nend"
    assert {"first line of the key", "second line of the key"} <= forms(value)
    assert value.replace("\n", "\r\n") in forms(value)
    assert "end" not in forms(value)


@given(TEXT)
def test_a_pattern_for_the_value_is_known(value: str) -> None:
    assert re.escape(value) in in_a_pattern(value)
    assert all(re.fullmatch(form, value, re.VERBOSE) or True for form in in_a_pattern(value))


@pytest.mark.parametrize("pattern", [r"a\.b-c", r"a\.b\-c", r"a\.b\-c"])
def test_however_a_pattern_escapes_it(pattern: str) -> None:
    assert re.fullmatch(pattern, "a.b-c")
    assert pattern in in_a_pattern("a.b-c")


def test_short_encodings_are_left_out() -> None:
    """Four characters of base64 stand in too many words by chance."""
    assert all(len(form) >= 6 for form in forms("abcde") if form != "abcde")
