"""Places to go on from: what was written is read again, and anything else is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsdrill.app.events.news import WINDOW_BYTES, WINDOW_NEWS, News, Window
from opsdrill.app.events.position import END, Position, read_position
from opsdrill.app.events.progress import MOST_RUNS, progress, read_progress
from opsdrill.errors import UsageError

COUNTS = st.integers(0, 10**9 - 1)
START = datetime(1970, 1, 1, tzinfo=UTC)
IDS = st.text(min_size=1, max_size=30)


@given(COUNTS, COUNTS, COUNTS)
def test_a_position_is_read_as_it_was_written(attempt: int, turns: int, events: int) -> None:
    position = Position(attempt, turns, events)
    assert read_position(str(position)) == position


def test_nothing_is_the_beginning_and_the_end_is_the_end() -> None:
    assert read_position(None) == Position()
    assert read_position(END) is None


@given(st.text(max_size=60))
def test_any_other_text_is_no_position(text: str) -> None:
    """It is refused in a sentence, or it is one that could have been written."""
    try:
        found = read_position(text)
    except UsageError:
        return
    assert found is None or Position() <= found


@given(
    st.integers(0, 10**16).map(lambda after: START + timedelta(microseconds=after)),
    st.dictionaries(IDS, st.integers(0, 3), max_size=50),
)
def test_a_progress_is_read_as_it_was_written(since: datetime, stages: dict[str, int]) -> None:
    """Whatever ids are called; the text can stand in a header."""
    written = progress(since, stages)
    text = str(written)
    assert read_progress(text) == written
    assert text.isascii() and text.isprintable() and " " not in text


def test_the_progress_of_very_many_runs_is_short() -> None:
    stages = {f"run-{number}": 3 if number % 7 else 2 for number in range(MOST_RUNS)}
    text = str(progress(datetime(2026, 1, 1, tzinfo=UTC), stages))
    assert len(text) < 500
    assert len(read_progress(text).stages) == MOST_RUNS


@given(st.one_of(st.text(max_size=100), st.binary(max_size=100).map(lambda b: b.hex())))
def test_any_other_text_is_no_progress(text: str) -> None:
    with pytest.raises(UsageError):
        read_progress(text)


def test_a_progress_that_would_grow_beyond_bounds_is_refused() -> None:
    """Packed as small as it may be."""
    stages = dict.fromkeys((str(number) for number in range(MOST_RUNS * 100)), 3)
    text = str(progress(datetime(2026, 1, 1, tzinfo=UTC), stages))
    assert len(text) < 8192
    with pytest.raises(UsageError):
        read_progress(text)


def test_a_window_is_bounded_in_number_and_in_bytes() -> None:
    """One who reads too slowly is told that something is gone, and never gets a gap."""
    window = Window()
    for number in range(WINDOW_NEWS + 10):
        window.add([News("job", b"%d" % number)])
    assert window.since(9) is None
    found = window.since(10)
    assert found is not None
    assert [int(news.data) for news in found] == list(range(10, WINDOW_NEWS + 10))
    assert window.since(window.next) == []
    window.add([News("job", b"x" * (WINDOW_BYTES // 2)) for _ in range(3)])
    left = window.since(window.next - 2)
    assert left is not None
    assert window.since(window.next - 3) is None
