"""Masking in pieces gives what masking the whole gives, however it is cut."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opsdrill.evidence.mask import Mask
from opsdrill.evidence.mask_stream import HELD, STEP, TOKEN, MaskStream

PASSWORD = "hunter2-X9"
MASK = Mask([("PW", PASSWORD), ("LINES", "first line of it\nsecond line of it")])
TOKEN_TEXT = "ghp_" + "A1b2C3d4E5f6" * 3
BODY = ("aB3dE5gH7jK9mN1pQ2sT4vW6xY8z" * 3)[:64]
KEY = "-----BEGIN {0}-----\n{1}-----END {0}-----\n".format("PRIVATE KEY", f"{BODY}\n" * 30)

PARTS = st.lists(
    st.sampled_from(
        [PASSWORD, "first line of it\nsecond line of it", TOKEN_TEXT, KEY, "\n", "word ", "ö" * 50,
         "x" * 700, PASSWORD[:6], "\ud800", "Bearer ", "text\n" * 300]
    ),
    max_size=25,
)  # fmt: skip


def streamed(text: str, sizes: list[int]) -> str:
    stream, given, start = MaskStream(MASK), [], 0
    for size in sizes:
        given.append(stream.feed(text[start : start + size]))
        start += size
    given += [stream.feed(text[start:]), stream.end()]
    return "".join(given)


@settings(max_examples=150, deadline=None)
@given(PARTS, st.lists(st.integers(0, 5000), max_size=30))
def test_pieces_make_no_difference(parts: list[str], sizes: list[int]) -> None:
    text = "".join(parts)
    assert streamed(text, sizes) == MASK.text(text)


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_every_cut_of_a_secret(size: int) -> None:
    text = f"line {PASSWORD} and {TOKEN_TEXT}\n" * (2 * STEP // 60) + KEY * 5
    assert streamed(text, [size] * (len(text) // size)) == MASK.text(text)


@pytest.mark.parametrize("line", ["a" * 100, f"-----BEGIN PRIVATE KEY-----\n{BODY}\n", "ö" * 33])
def test_memory_is_bounded_without_any_line_end(line: str) -> None:
    """What it waits for has an end, also inside of what looks like a key."""
    line = line.replace("\n", "") if "BEGIN" not in line else line
    stream, waiting = MaskStream(MASK), 0
    for _ in range(3 * HELD // len(line)):
        waiting += len(line.encode()) - len(stream.feed(line).encode())
        assert waiting <= 4 * (HELD + TOKEN + STEP)
    stream.end()


def test_a_long_line_hides_no_secret() -> None:
    line = (f"{'a' * 99} {PASSWORD} " * (3 * HELD // 110)) + TOKEN_TEXT
    got = streamed(line, [1000] * (len(line) // 1000))
    assert got == MASK.text(line)


def test_a_stream_that_was_cut() -> None:
    stream = MaskStream(MASK)
    assert stream.feed(f"a {PASSWORD[:6]}") == ""
    assert stream.end(cut=True) == "a [masked:PW]"
