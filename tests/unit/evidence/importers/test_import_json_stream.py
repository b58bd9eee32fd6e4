"""Bytes for the streaming parser: what is not JSON is mended, what is a bomb is refused."""

from __future__ import annotations

import io
import json
import math
import re
from typing import cast

import ijson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsdrill.evidence.transcripts.glimpse import Glimpse
from opsdrill.evidence.transcripts.json_stream import DEPTH_LIMIT, JsonStream
from opsdrill.evidence.transcripts.rows import row


class _Dribble(io.BytesIO):
    """Gives at most so many bytes at a time."""

    def __init__(self, content: bytes, most: int) -> None:
        super().__init__(content)
        self._most = most

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(size, self._most) if size and size > 0 else size)


def _through(content: bytes, most: int) -> bytes:
    stream = JsonStream(_Dribble(content, most))
    return b"".join(iter(lambda: stream.read(65536), b""))


def _mended(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int) and not isinstance(value, bool):
        return value if -(2**63) < value < 2**63 else None
    if isinstance(value, list):
        return [_mended(item) for item in value]
    if isinstance(value, dict):
        return {key: _mended(item) for key, item in value.items()}
    return value


TEXTS = st.text() | st.sampled_from(['"', "\\", '\\"', "NaN", "1e999", "[{", "9" * 30])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([2**63, -(2**63), 2**63 - 1, 10**40])
    | TEXTS,
    lambda below: st.lists(below) | st.dictionaries(TEXTS, below),
    max_leaves=12,
)


@given(VALUES, st.integers(1, 40), st.booleans())
def test_only_numbers_that_are_none_are_changed(value: object, most: int, ascii: bool) -> None:
    """Cut into whatever pieces: NaN, infinities and giants become null, all else stays."""
    content = json.dumps([value], ensure_ascii=ascii).encode(errors="replace")
    assert json.loads(_through(content, most)) == _mended(json.loads(content))
    found = list(ijson.items(JsonStream(_Dribble(content, most)), "item", use_float=True))
    assert len(found) == 1


@given(st.binary(), st.integers(1, 9))
def test_any_bytes_become_utf8(content: bytes, most: int) -> None:
    """Bytes that are no UTF-8 never stop the reading."""
    _through(content, most).decode()


def test_deep_nesting_is_refused() -> None:
    """A nesting bomb is refused before its paths fill the memory."""
    bomb = b'{"a":' * 200_000
    with pytest.raises(ijson.JSONError, match=f"more than {DEPTH_LIMIT} levels"):
        list(ijson.items(JsonStream(io.BytesIO(bomb)), "a"))
    assert len(Glimpse(bomb).scalars) <= DEPTH_LIMIT


def test_brackets_in_texts_are_no_nesting() -> None:
    """Only lists and objects count, not brackets in a text."""
    content = json.dumps({"a": "[" * 9999, "b": 1}).encode()
    assert list(ijson.items(JsonStream(io.BytesIO(content)), "b")) == [1]


def test_a_text_without_end_is_refused() -> None:
    """A text longer than the limit is not gathered."""

    class Endless:
        def read(self, size: int = -1) -> bytes:
            return b'"' if size == 0 else b"a" * max(size, 1 << 20)

    stream = JsonStream(cast("io.BytesIO", Endless()))
    with pytest.raises(ijson.JSONError, match="longer than"):
        for _ in range(200):
            stream.read(1 << 20)


@pytest.mark.parametrize("strange", ["NaN", "-Infinity", "1e999", "9" * 5000])
def test_a_strange_number_loses_no_line(strange: str) -> None:
    """A line with a number that is none is read; the number is null."""
    assert row(f'{{"a": {strange}, "b": 1}}'.encode()) == {"a": None, "b": 1}


@given(st.text(st.sampled_from('\ud83d\ude00\udcff\\u"dc0a'), max_size=30), st.integers(1, 40))
def test_halves_of_surrogate_pairs_lose_no_document(text: str, most: int) -> None:
    """However the pieces are cut: half a pair becomes U+FFFD, a pair stays the character it is."""
    content = json.dumps([text]).encode()
    [found] = ijson.items(JsonStream(_Dribble(content, most)), "item")
    assert found == re.sub("[\ud800-\udfff]", "\ufffd", json.loads(content)[0])
