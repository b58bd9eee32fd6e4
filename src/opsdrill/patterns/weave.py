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
from typing import Any, NamedTuple

from opsdrill.patterns.merging import OTHER_BYTES, WORD_BYTES
from opsdrill.patterns.sifted import MOST_FOREIGN, SEPARATOR
from opsdrill.patterns.translation import matcher

_BREAK = 0x0A
_ASCII = bytes(range(0x80))
_PLAIN = "".join(map(chr, _ASCII))
_KEPT = 64
_FEW = 16
_UNKNOWN = 0xFE
_UNDEFINED = "\ufffe"  # stands for no character in a table of the codec


class _Plan(NamedTuple):
    """How texts with certain foreign characters become bytes.

    Attributes:
        swaps: characters beyond Latin-1, each with one of it that the texts do not have; or
        codec: what gives each character a byte, where they are many.
        table: what makes our bytes of those.
    """

    swaps: tuple[tuple[str, str], ...]
    codec: Any
    table: bytes


class Weave:
    """An alphabet made of what patterns accept.

    Args:
        places: what stands for one character in the patterns: nodes with flags.

    Attributes:
        codes: the byte of one character of each kind that was met; with it patterns are written.
    """

    def __init__(self, places: Iterable[tuple[Any, Any, int]]) -> None:
        self._accepts = [matcher(*place).match for place in places]
        others = bytes(byte for byte in OTHER_BYTES if byte != _UNKNOWN)
        self._words, self._others = list(reversed(WORD_BYTES)), list(reversed(others))
        self._kinds: dict[tuple[bool, ...], int | None] = {}
        self._known: dict[str, int | None] = {}
        self.codes: dict[str, int] = {}
        for character in _PLAIN:
            self._learn(character)
        self._usable = None not in self._known.values()
        self._plans: dict[str, _Plan | None] = {}
        self._swaps: dict[str, str] = {}
        self._latin = bytearray(self._lines(_PLAIN)[:0x80].ljust(256, bytes((_UNKNOWN,))))
        self._swapped = bytearray(self._latin)

    def encode(self, together: str) -> bytes | None:
        """Values with a NUL between any two, one a line; None where a character gets no byte."""
        if not self._usable:
            return None
        return self._quickly(together) or self._encoded(together)

    def encode_each(self, values: Sequence[str]) -> bytes | None:
        """Values with NUL in them, none of them empty; else as `encode`."""
        if not self._usable:
            return None
        own = self._table("\0")[:1]
        one_by_one = [self._encoded(value, own) for value in values]
        return None if None in one_by_one else b"\n".join(filter(None, one_by_one))

    def _encoded(self, text: str, nul: bytes | None = None) -> bytes | None:
        """A text in bytes, where NUL becomes `nul`; None: a line break."""
        foreign = _foreign(text)
        self._meet(foreign)
        if foreign not in self._plans:
            if len(self._plans) >= _KEPT:
                self._plans.clear()
            self._plans[foreign] = self._plan(foreign)
        plan = self._plans[foreign]
        if plan is None:
            return None
        for character, byte in plan.swaps:
            text = text.replace(character, byte)
        if plan.codec is not None:
            encoded = codecs.charmap_encode(text, "strict", plan.codec)[0]
        else:
            encoded = text.encode("latin-1")
        return encoded.translate(plan.table if nul is None else nul + plan.table[1:])

    def _quickly(self, text: str) -> bytes | None:
        """The same by the table of the characters met so far; None where one is not in it."""
        table = self._latin
        there = [character for character in self._swaps if character in text]
        if there:
            if any(byte in text for byte in self._swaps.values()):
                return None
            for character in there:
                text = text.replace(character, self._swaps[character])
            table = self._swapped
        try:
            encoded = text.encode("latin-1").translate(table)
        except UnicodeEncodeError:
            return None
        return None if _UNKNOWN in encoded else encoded

    def _meet(self, foreign: str) -> None:
        """Learn characters, and put them into that table where there is room."""
        for character in foreign:
            if character in self._known:
                continue
            self._learn(character)
            code = self._known[character]
            if code is None:
                continue
            if "\xa0" <= character <= "\xff":
                self._latin[ord(character)] = self._swapped[ord(character)] = code
            elif character > "\xff" and len(self._swaps) < _FEW:
                # The codes of control characters, which hardly any text has, stand for others.
                byte = 0x80 + len(self._swaps)
                self._swaps[character] = chr(byte)
                self._swapped[byte] = code

    def _plan(self, foreign: str) -> _Plan | None:
        """How texts with these characters are encoded; None: one of them gets no byte."""
        codes = [self._known[character] for character in foreign]
        if None in codes or len(foreign) > MOST_FOREIGN or _UNDEFINED in foreign:
            return None
        far = [character for character in foreign if character > "\xff"]
        if len(far) > _FEW:
            characters = (_PLAIN + foreign).ljust(256, _UNDEFINED)
            return _Plan((), codecs.charmap_build(characters), self._lines(_PLAIN + foreign))
        free = (chr(byte) for byte in range(0x80, 0x100) if chr(byte) not in foreign)
        swaps = dict(zip(far, free, strict=False))
        table = bytearray(self._lines(_PLAIN))
        for character, code in zip(foreign, codes, strict=True):
            table[ord(swaps.get(character, character))] = code or 0
        return _Plan(tuple(swaps.items()), None, bytes(table))

    def _lines(self, characters: str) -> bytes:
        return bytes((_BREAK,)) + self._table(characters)[1:]

    def _table(self, characters: str) -> bytes:
        return bytes(self._known[character] or 0 for character in characters).ljust(256, b"\0")

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


def _foreign(text: str) -> str:
    """The different characters outside ASCII, sorted."""
    if text.isascii():
        return ""
    left = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
    return "".join(sorted(set(left.decode("utf-8", "surrogatepass"))))
