"""Values sorted by what the linear engine can make of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

BLOCK = 256 * 1024
"""Characters of a block of values, and of a value that still stands in one with others."""


class Block:
    """Some values without a line break, one a line, as one text.

    Attributes:
        text: the values in ASCII.
        starts: where each begins in `text`.
        places: the place of each among all values.
    """

    def __init__(self, values: Sequence[str], places: list[int]) -> None:
        chosen = [values[place] for place in places]
        self.text = "\n".join(chosen).encode("ascii")
        self.starts = [0, *accumulate(len(value) + 1 for value in chosen[:-1])]
        self.places = places


class Sifted:
    """All values of a search by kind.

    Attributes:
        values: what was sifted.
        blocks: ASCII without a line break.
        single: places of ASCII values with a line break, or too long for a block.
        empty: places of empty values.
        foreign: places of values that are not ASCII.
    """

    def __init__(self, values: Sequence[str]) -> None:
        self.values = values
        self.single: list[int] = []
        self.empty: list[int] = []
        self.foreign: list[int] = []
        self.blocks: list[Block] = []
        lines: list[int] = []
        room = BLOCK
        for place, value in enumerate(values):
            if not value.isascii():
                self.foreign.append(place)
            elif not value:
                self.empty.append(place)
            elif "\n" in value or len(value) > BLOCK:
                self.single.append(place)
            else:
                room -= len(value) + 1
                if room < 0 and lines:
                    self.blocks.append(Block(values, lines))
                    lines, room = [], BLOCK - len(value) - 1
                lines.append(place)
        if lines:
            self.blocks.append(Block(values, lines))
