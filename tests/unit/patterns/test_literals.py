"""Many texts at once: what is found is what looking for each of them would find."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsdrill.patterns.literals import HEAD, OVERLAPS, Literals, Place

LETTERS = st.binary(min_size=1, max_size=12).map(lambda data: bytes(b"ab\nc"[b % 4] for b in data))


def covered(texts: set[bytes], data: bytes) -> set[int]:
    """The bytes that any of the texts covers, one text after the other."""
    found: set[int] = set()
    for text in texts:
        start = data.find(text)
        while start >= 0:
            found |= set(range(start, start + len(text)))
            start = data.find(text, start + 1)
    return found


@given(st.sets(LETTERS, max_size=8), st.lists(LETTERS, max_size=10).map(b"".join))
def test_all_that_the_texts_cover_is_found(texts: set[bytes], data: bytes) -> None:
    """In order, apart from each other, and nothing that no text covers."""
    places = Literals({text: text.hex() for text in texts}).places(data)
    found = [byte for place in places for byte in range(place.start, place.end)]
    assert found == sorted(set(found))
    wanted = covered(texts, data)
    assert set(found) <= wanted
    if len(data) < OVERLAPS:
        assert set(found) == wanted


@given(st.sets(LETTERS, min_size=1, max_size=8), LETTERS)
def test_no_text_is_left_whole(texts: set[bytes], data: bytes) -> None:
    """However often texts overlap, what lies between the places holds none."""
    data *= 20
    end, rest = 0, b""
    for place in Literals(dict.fromkeys(texts, "x")).places(data):
        rest += data[end : place.start] + b"\0"
        end = place.end
    rest += data[end:]
    assert not any(text in rest for text in texts)


def test_the_longer_text_gives_the_name() -> None:
    texts = Literals({b"secret": "SHORT", b"secret-and-more": "LONG", b"and": "INNER"})
    assert texts.places(b"a secret-and-more, a secret, and") == [
        Place(2, 17, "LONG"),
        Place(21, 27, "SHORT"),
        Place(29, 32, "INNER"),
    ]


def test_texts_that_overlap_are_one_place() -> None:
    assert Literals({b"abcdefgh": "A", b"ghijkl": "B"}).places(b"-abcdefghijkl-") == [
        Place(1, 13, "A")
    ]


def test_without_texts_nothing_is_found() -> None:
    assert Literals({}).places(b"anything") == []
    assert Literals({b"": "EMPTY"}).places(b"anything") == []


@pytest.mark.parametrize("text", [b"\xff\xfe\x00\x01binary", b".*[x](y)", b"\\d+\\b$", b"a|b|c^d"])
def test_bytes_of_any_kind_are_literal(text: bytes) -> None:
    data = b"a1b2 \xff\xfe <" + text + b">"
    assert [data[p.start : p.end] for p in Literals({text: "T"}).places(data)] == [text]


def test_a_text_that_is_cut_off_is_seen_at_the_end() -> None:
    texts = Literals({b"hunter2-and-more": "PW", b"xyz": "SHORT"})
    assert texts.begun(b"the hunter2-an", 4) == Place(4, 14, "PW")
    assert texts.begun(b"the hunt", 4) == Place(4, 8, "PW")
    assert texts.begun(b"the hun", 4) is None
    assert texts.begun(b"the xy", 2) == Place(4, 6, "SHORT")
    assert texts.begun(b"hunter2-and-more", 4) is None
    assert texts.begun(b"", 1) is None
    assert texts.reversed().begun(b"er2-and-more, it"[::-1], 4) == Place(4, 16, "PW")
    assert texts.reversed().begun(b"more, it"[::-1], 5) is None


@given(LETTERS.filter(lambda text: len(text) > HEAD), st.integers(1, 11), LETTERS)
def test_every_beginning_of_a_text_is_seen(text: bytes, size: int, before: bytes) -> None:
    begun = text[: min(size, len(text) - 1)]
    place = Literals({text: "T"}).begun(before + begun, 1)
    assert place is not None
    assert place.start <= len(before)
