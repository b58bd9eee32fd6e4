"""Runs as tables show them to people from afar."""

from __future__ import annotations

from collections.abc import Sequence

from opsdrill.app.own_folders import own_folders, told_row
from opsdrill.app.wiring import Place
from opsdrill.store.store import RunRow


def told_rows(place: Place, rows: Sequence[RunRow]) -> list[RunRow]:
    """The rows without the folders of this machine, which a reason may name."""
    names = own_folders(place)
    return [told_row(row, names) for row in rows]
