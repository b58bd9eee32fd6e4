"""Rows under headers: whole in a pipe, shortened on a terminal that is too narrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Literal

from opsdrill.app.safe_text import shown

GAP = 2
LEAST = {"shorten": 12, "end": 16, "drop": 24}
"""Cells that a column keeps when it is cut."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column, and what it does where there is no room.

    `keep`: it stays whole. `shorten`: its cells are cut, and keep their beginning or, as paths
    do, their `end`. `drop`: it is cut, and left out where that is not enough, the last such column
    first.
    """

    name: str
    narrow: Literal["keep", "shorten", "end", "drop"] = "keep"


def lines(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    *,
    width: int | None,
    stream: IO[str],
    styles: dict[str, str],
) -> list[str]:
    """The table as lines; every cell is made safe here.

    Args:
        width: of the terminal, in cells; None: there is no bound.
        stream: where the lines will go, for what it can show.
        styles: a Rich style for cells with just this text; none: no colours.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cells = [[shown(cell) for cell in row] for row in rows]
    widths = _fitted(columns, cells, width)
    dots = "…" if _shows_dots(stream) else ".."
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, GAP, 0, 0))
    for place, room in widths.items():
        table.add_column(columns[place].name, width=room, no_wrap=True)
    for row in cells:
        table.add_row(
            *(
                Text(
                    _cut(row[place], room, dots, end=columns[place].narrow == "end"),
                    style=styles.get(row[place], ""),
                )
                for place, room in widths.items()
            )
        )
    console = Console(
        file=stream,
        width=sum(widths.values()) + GAP * len(widths),
        color_system="standard" if styles else None,
        force_terminal=bool(styles),
        highlight=False,
    )
    with console.capture() as capture:
        console.print(table)
    return [line.rstrip() for line in capture.get().rstrip("\n").split("\n")]


def _fitted(
    columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int | None
) -> dict[int, int]:
    """The width of each column that is shown, by its place."""
    from rich.cells import cell_len

    widths = {
        place: max(cell_len(text) for text in [column.name, *(row[place] for row in cells)])
        for place, column in enumerate(columns)
    }
    if width is None:
        return widths
    least = {
        place: min(natural, LEAST.get(columns[place].narrow, natural))
        for place, natural in widths.items()
    }
    for place in reversed(range(len(columns))):
        too_wide = sum(least[shown] + GAP for shown in widths) - GAP > width
        if too_wide and columns[place].narrow == "drop":
            del widths[place]
    while (excess := sum(widths.values()) + GAP * (len(widths) - 1) - width) > 0:
        spare = {place: room - least[place] for place, room in widths.items()}
        widest = max(spare, key=lambda place: spare[place])
        if spare[widest] <= 0:
            break
        second = sorted(spare.values())[-2] if len(spare) > 1 else 0
        widths[widest] -= max(1, min(excess, spare[widest] - second, spare[widest]))
    return widths


def _cut(text: str, room: int, dots: str, *, end: bool) -> str:
    from rich.cells import cell_len

    if cell_len(text) <= room:
        return text
    while text and cell_len(text) > room - len(dots):
        text = text[1:] if end else text[:-1]
    return dots + text if end else text + dots


def _shows_dots(stream: IO[str]) -> bool:
    try:
        "…".encode(getattr(stream, "encoding", None) or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True
