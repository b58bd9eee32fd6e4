"""Values sorted by what the linear engine can make of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

BLOCK = 256 * 1024
"""Characters of a block of values, and of a value that still stands in one with others."""


class Block:
    """Some ASCII values as one text, a separator that is in none of them between any two.

    Attributes:
        text: the values.
        starts: where each begins in `text`.
        places: the place of each among all values.
    """

    def __init__(self, values: Sequence[str], places: list[int], separator: bytes) -> None:
        chosen = [values[place] for place in places]
        self.text = separator.join([value.encode("ascii") for value in chosen])
        self.starts = [0, *accumulate(len(value) + 1 for value in chosen[:-1])]
        self.places = places


class Sifted:
    """All values of a search by kind.

    Attributes:
        values: what was sifted.
        lines: ASCII without a line break, one a line.
        texts: ASCII with line breaks, a byte that is not ASCII between any two.
        long: places of ASCII values that are too long for a block.
        empty: places of empty values.
        foreign: places of values that are not ASCII.
    """

    def __init__(self, values: Sequence[str]) -> None:
        self.values = values
        self.long: list[int] = []
        self.empty: list[int] = []
        self.foreign: list[int] = []
        lines: list[int] = []
        texts: list[int] = []
        for place, value in enumerate(values):
            if not value.isascii():
                self.foreign.append(place)
            elif not value:
                self.empty.append(place)
            elif len(value) > BLOCK:
                self.long.append(place)
            elif "\n" in value:
                texts.append(place)
            else:
                lines.append(place)
        self.lines = [Block(values, part, b"\n") for part in _parts(values, lines)]
        self.texts = [Block(values, part, b"\xff") for part in _parts(values, texts)]


def _parts(values: Sequence[str], places: list[int]) -> Iterator[list[int]]:
    """The places in parts whose values fill a block."""
    part: list[int] = []
    room = BLOCK
    for place in places:
        room -= len(values[place]) + 1
        if room < 0 and part:
            yield part
            part, room = [], BLOCK - len(values[place]) - 1
        part.append(place)
    if part:
        yield part
