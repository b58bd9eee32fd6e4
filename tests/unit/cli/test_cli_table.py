"""Tables: whole in a pipe; on a narrow terminal nothing spills over and names stay whole."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from opsdrill.cli.table import Column, lines

COLUMNS = [Column("ID"), Column("TITLE", "shorten"), Column("AGENT", "end"), Column("WHY", "drop")]
ROW = [
    "20260131-120000",
    "A title of some length",
    "script:agents/by-the-book.yaml",
    "because " * 9,
]


def stream(encoding: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding=encoding)


def made(rows: list[list[str]], width: int | None, encoding: str = "utf-8") -> list[str]:
    return lines(COLUMNS, rows, width=width, stream=stream(encoding), styles={})


def test_a_pipe_gets_everything_on_one_line_a_row() -> None:
    header, row = made([ROW], None)
    assert header.split() == ["ID", "TITLE", "AGENT", "WHY"]
    assert all(cell.strip() in row for cell in ROW)


def test_a_narrow_terminal_cuts_titles_behind_and_agents_in_front() -> None:
    header, row = made([ROW], 60)
    assert header.split() == ["ID", "TITLE", "AGENT"]
    assert row.startswith("20260131-120000  A title")
    assert row.endswith("book.yaml")
    assert row.count("…") == 2


def test_a_plain_terminal_gets_dots_that_it_can_show() -> None:
    assert all(line.isascii() for line in made([ROW], 60, "ascii"))


@given(
    st.lists(st.lists(st.text(max_size=60), min_size=4, max_size=4), min_size=1, max_size=4),
    st.integers(60, 200),
)
def test_no_line_is_wider_than_the_terminal_while_ids_fit(
    rows: list[list[str]], width: int
) -> None:
    rows = [[row[0][:3], *row[1:]] for row in rows]
    found = made(rows, width)
    assert len(found) == len(rows) + 1
    assert all(cell_len(line) <= width for line in found)


@pytest.mark.parametrize("width", [1, 10, 20])
def test_a_terminal_too_narrow_for_anything_still_shows_the_rows(width: int) -> None:
    assert len(made([ROW, ROW], width)) == 3
