"""Values sorted by what the linear-time engine can make of them, as bytes, one a character."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

BLOCK = 256 * 1024
"""Characters of a block of values, and of a value that still stands in one with others."""

SEPARATOR = 0xFF
MOST_FOREIGN = SEPARATOR - 0x80


class Alphabet:
    """Which byte stands for which character: the ASCII ones for themselves, others from 0x80 on.

    Two alphabets with the same foreign characters in the same order are equal.
    """

    def __init__(self, foreign: str = "") -> None:
        self.foreign = foreign
        self.codes = {chr(code): code for code in range(0x80)}
        self.codes |= {character: 0x80 + number for number, character in enumerate(foreign)}
        self._table = {ord(character): self.codes[character] for character in foreign}

    def encode(self, value: str) -> bytes:
        return (value.translate(self._table) if self._table else value).encode("latin-1")


class Block:
    """Some values as one text, a separator that is in none of them between any two.

    Attributes:
        text: the values in bytes.
        starts: where each begins in `text`.
        places: the place of each among all values.
    """

    def __init__(
        self, values: Sequence[str], places: list[int], alphabet: Alphabet, separator: int
    ) -> None:
        chosen = [alphabet.encode(values[place]) for place in places]
        self.text = bytes((separator,)).join(chosen)
        self.starts = [0, *accumulate(len(value) + 1 for value in chosen[:-1])]
        self.places = places


class Group:
    """The values that are written in one alphabet.

    Attributes:
        alphabet: its bytes.
        words: some foreign characters in it are letters or digits.
        lines: values without a line break, one a line.
        texts: values with line breaks.
        long: places of values that are too long for a block.
    """

    def __init__(
        self, values: Sequence[str], places: Sequence[int], alphabet: Alphabet, *, words: bool
    ) -> None:
        self.alphabet = alphabet
        self.words = words
        self.long = [place for place in places if len(values[place]) > BLOCK]
        short = [place for place in places if len(values[place]) <= BLOCK]
        lines = [place for place in short if "\n" not in values[place]]
        texts = [place for place in short if "\n" in values[place]]
        self.lines = [Block(values, part, alphabet, 0x0A) for part in parts(values, lines)]
        self.texts = [Block(values, part, alphabet, SEPARATOR) for part in parts(values, texts)]

    @property
    def places(self) -> list[int]:
        """The places of all its values."""
        blocks = (*self.lines, *self.texts)
        return [*self.long, *(place for block in blocks for place in block.places)]


class Sifted:
    """All values of a search by kind.

    Attributes:
        values: what was sifted.
        groups: the values that can be written in an alphabet of one byte a character.
        empty: places of empty values.
        rest: places of values with too many different foreign characters.
    """

    def __init__(self, values: Sequence[str]) -> None:
        self.values = values
        self.empty: list[int] = []
        self.rest: list[int] = []
        ascii_: list[int] = []
        signs: list[int] = []
        words: list[int] = []
        foreign: dict[str, bool] = {}  # character -> it is a letter or a digit
        for place, value in enumerate(values):
            if not value:
                self.empty.append(place)
            elif value.isascii():
                ascii_.append(place)
            elif (worded := _learn(foreign, value)) is None:
                self.rest.append(place)
            else:
                (words if worded else signs).append(place)
        alphabet = Alphabet("".join(foreign))
        self.groups = [
            Group(values, ascii_, Alphabet(), words=False),
            Group(values, signs, alphabet, words=False),
            Group(values, words, alphabet, words=True),
        ]


def _learn(foreign: dict[str, bool], value: str) -> bool | None:
    """Add a value's foreign characters to those known.

    Returns:
        Whether one of them belongs to words; None where there is no room for them.
    """
    found = sorted(character for character in set(value) if character > "\x7f")
    new = [character for character in found if character not in foreign]
    if len(foreign) + len(new) > MOST_FOREIGN:
        return None
    for character in new:
        foreign[character] = re.match(r"\w", character) is not None
    return any(foreign[character] for character in found)


def parts(values: Sequence[str], places: Sequence[int]) -> Iterator[list[int]]:
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
