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
_KEPT = 64
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
        self._usable = None not in self._known.values()
        self._tables: dict[str, tuple[bytes, Any]] = {}

    def encode(self, values: Sequence[str]) -> bytes | None:
        """Values one a line; None where their characters do not all get a byte."""
        if not self._usable:
            return None
        if "\0" not in "".join(values):
            return self._encoded("\0".join(values), _BREAK)
        one_by_one = [self._encoded(value, None) for value in values]
        return None if None in one_by_one else b"\n".join(filter(None, one_by_one))

    def _encoded(self, text: str, nul: int | None) -> bytes | None:
        """A text in bytes, where NUL becomes `nul`; None: its own byte."""
        foreign = _foreign(text)
        for character in foreign.difference(self._known):
            self._learn(character)
        known = self._known
        if any(known[character] is None for character in foreign):
            return None
        if len(foreign) > MOST_FOREIGN or _UNDEFINED in foreign:
            bytes_ = {ord(each): known[each] for each in {*foreign, *_PLAIN}}
            if nul is not None:
                bytes_[0] = nul
            return text.translate(bytes_).encode("latin-1")
        table, codec = self._table("".join(sorted(foreign)))
        if nul is not None:
            table = bytes((nul,)) + table[1:]
        plain = codecs.charmap_encode(text, "strict", codec)[0] if foreign else text.encode("ascii")
        return plain.translate(table)

    def _table(self, foreign: str) -> tuple[bytes, Any]:
        """What gives each character of a text a byte of its own, and what makes those ours."""
        found = self._tables.get(foreign)
        if found is None:
            ours = bytes(self._known[each] or 0 for each in _PLAIN + foreign)
            characters = (_PLAIN + foreign).ljust(256, _UNDEFINED)
            found = ours.ljust(256, b"\0"), codecs.charmap_build(characters)
            if len(self._tables) >= _KEPT:
                self._tables.clear()
            self._tables[foreign] = found
        return found

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
