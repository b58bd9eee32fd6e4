r"""Characters that a pattern cannot tell apart, merged, so that every letter becomes an ASCII one.

The linear-time engine sees the edge of a word (`\b`) between ASCII letters, digits and `_` and all
else; `re` counts every letter of every script. A pattern tells few characters apart, though. So
each class of letters that are alike to it gets an ASCII letter, and all others get other bytes.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Mapping

from opsdrill.patterns.sifted import SEPARATOR

_BREAK = 0x0A
WORD_BYTES = (string.digits + string.ascii_letters + "_").encode()
OTHER_BYTES = bytes(byte for byte in range(256) if byte not in (*WORD_BYTES, _BREAK, SEPARATOR))


def merge(codes: Mapping[str, int], sets: Iterable[str]) -> dict[str, int] | None:
    """New bytes for the characters of an alphabet; None where there are too few.

    Args:
        codes: the bytes that stand for the characters now.
        sets: for each place of the pattern, the characters accepted there.

    Returns:
        For every character a byte that it shares with those in exactly the same sets. A line
        break keeps its own.
    """
    member: dict[str, list[int]] = {character: [] for character in codes}
    for number, accepted in enumerate(sets):
        for character in accepted:
            member[character].append(number)
    words, others = iter(WORD_BYTES), iter(OTHER_BYTES)
    classes: dict[tuple[bool, tuple[int, ...]], int] = {}
    merged: dict[str, int] = {}
    for character, numbers in member.items():
        if character == "\n":
            merged[character] = _BREAK
            continue
        word = re.match(r"\w", character) is not None
        kind = (word, tuple(numbers))
        if kind not in classes:
            byte = next(words if word else others, None)
            if byte is None:
                return None
            classes[kind] = byte
        merged[character] = classes[kind]
    return merged


def table(codes: Mapping[str, int], merged: Mapping[str, int]) -> bytes:
    """What makes the new bytes of the old ones, for `bytes.translate`."""
    bytes_ = bytearray(range(256))
    for character, code in codes.items():
        bytes_[code] = merged[character]
    return bytes(bytes_)
