r"""One alphabet of bytes for all characters there are, as far as some patterns tell them apart.

Patterns tell few characters apart. All that are alike to each of them share a byte, so that an
alphabet once made serves texts in any script, and grows only when a character comes that is like
none before. Letters, digits and `_` of all scripts share ASCII word bytes and all else shares
others, for the engine sees the edge of a word (`\b`) only there. The line break gets a byte of its
own, so that values with line breaks can stand one a line too.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Sequence
from typing import Any

from opsdrill.patterns.merging import OTHER_BYTES, WORD_BYTES
from opsdrill.patterns.sifted import MOST_FOREIGN, SEPARATOR
from opsdrill.patterns.translation import matcher

_BREAK = 0x0A
_ASCII = bytes(range(0x80))
_PLAIN = "".join(map(chr, _ASCII))
_UNDEFINED = "\ufffe"  # stands for no character in a table of the codec


class Weave:
    """An alphabet made of what patterns accept.

    Args:
        places: what stands for one character in the patterns: nodes with flags.

    Attributes:
        codes: the byte of one character of each kind that was met; with it patterns are written.
    """

    def __init__(self, places: Iterable[tuple[Any, Any, int]]) -> None:
        self._accepts = [matcher(*place).match for place in places]
        self._words, self._others = list(reversed(WORD_BYTES)), list(reversed(OTHER_BYTES))
        self._kinds: dict[tuple[bool, ...], int | None] = {}
        self._known: dict[str, int | None] = {}
        self.codes: dict[str, int] = {}
        for character in _PLAIN:
            self._learn(character)
        self.usable = None not in self._known.values()

    def learn(self, values: Iterable[str]) -> bool:
        """Meet the characters of some values; whether all of them have a byte."""
        return all(self._code(character) is not None for character in _foreign("".join(values)))

    def encode(self, values: Sequence[str]) -> bytes:
        """Values whose characters have a byte, one a line."""
        joined = "\0".join(values)
        if joined.count("\0") != len(values) - 1:
            return b"\n".join(self._encoded(value, 0) for value in values)
        return self._encoded(joined, _BREAK)

    def _encoded(self, text: str, nul: int | None) -> bytes:
        """A text in bytes, where NUL becomes `nul`; 0: its own byte."""
        foreign = sorted(_foreign(text))
        if len(foreign) > MOST_FOREIGN or _UNDEFINED in foreign:
            bytes_ = {ord(each): self._known[each] for each in {*foreign, *_PLAIN}}
            if nul:
                bytes_[0] = nul
            return text.translate(bytes_).encode("latin-1")
        # Each character gets a byte of this text, which becomes the byte of its kind.
        table = [self._known[each] or 0 for each in (*_PLAIN, *foreign)]
        if nul:
            table[0] = nul
        padded = bytes(table).ljust(256, b"\0")
        if not foreign:
            return text.encode("ascii").translate(padded)
        characters = (_PLAIN + "".join(foreign)).ljust(256, _UNDEFINED)
        return codecs.charmap_encode(text, "strict", codecs.charmap_build(characters))[0].translate(
            padded
        )

    def _code(self, character: str) -> int | None:
        if character not in self._known:
            self._learn(character)
        return self._known[character]

    def _learn(self, character: str) -> None:
        if character == "\n":
            self._known[character] = self.codes[character] = SEPARATOR
            return
        word = re.match(r"\w", character) is not None
        kind = (word, *(accept(character) is not None for accept in self._accepts))
        if kind not in self._kinds:
            free = self._words if word else self._others
            self._kinds[kind] = byte = free.pop() if free else None
            if byte is not None:
                self.codes[character] = byte
        self._known[character] = self._kinds[kind]


def _foreign(text: str) -> set[str]:
    """The different characters outside ASCII."""
    if text.isascii():
        return set()
    left = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
    return set(left.decode("utf-8", "surrogatepass"))
