"""Cursors of lists that are counted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsdrill.errors import UsageError
from opsdrill.store.cursor import decode_number, encode_number


@given(st.integers(0, 10**9 - 1), st.booleans())
def test_a_number_comes_back_with_and_without_padding(number: int, padded: bool) -> None:
    cursor = encode_number(number)
    assert "=" not in cursor
    padding = "=" * (-len(cursor) % 4) if padded else ""
    assert decode_number(cursor + padding) == number


@pytest.mark.parametrize("cursor", ["", "x", "LTE", "MS41", "é", "MTAwMDAwMDAwMA", "a b", "=" * 99])
def test_what_no_page_gave_is_refused(cursor: str) -> None:
    with pytest.raises(UsageError, match="the cursor is none that a page gave"):
        decode_number(cursor)
