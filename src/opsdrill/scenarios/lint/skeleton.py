"""A sequence of a pattern as a plain text with one character a part, for looking at its shape."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from opsdrill.scenarios.lint.expression import (
    Character,
    Dot,
    Group,
    Item,
    Position,
    Repeat,
    Sequence,
    Set,
)

DOT = "\ue000"
"""Stands for one `.`"""
GAP = "\ue001"
"""Stands for `.*` and its like: some text of the same line, or none."""
SPACES = "\ue002"
"""Stands for space that may be missing."""
EDGE = "\ue003"
"""Stands for a position, such as `\\b` or `^`."""
OTHER = "\ue004"
"""Stands for any other part."""

_SPACE = " \t\n\r"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Skeleton:
    """`text[i]` stands for `items[i]`: a character for itself, a digit class as 7, space as one
    space (a line break stays one), everything else as one of the stand-ins above."""

    text: str
    items: tuple[Item, ...]


def skeleton(sequence: Sequence) -> Skeleton:
    return Skeleton("".join(map(_stands_for, sequence.items)), sequence.items)


def _stands_for(item: Item) -> str:
    match item:
        case Character(char=char):
            return " " if char == "\t" else char if char < DOT or char > OTHER else OTHER
        case Dot():
            return DOT
        case Position():
            return EDGE
        case Set():
            return _of_set(item)
        case Repeat(item=Dot()):
            return GAP
        case Repeat(item=Set() | Character()):
            inner = _stands_for(item.item)
            if inner == " ":
                return " " if item.low else SPACES
            return "7" if inner == "7" and item.low else OTHER
        case _:
            return OTHER


def _of_set(item: Set) -> str:
    if is_space(item):
        return " "
    return "7" if accepted(item, _LETTERS + "0123456789-._/ ") == "0123456789" else OTHER


def is_space(item: Item) -> bool:
    """Whether an item, or what it repeats, accepts only space."""
    if isinstance(item, Repeat):
        return is_space(item.item)
    if isinstance(item, Character):
        return item.char in _SPACE
    shown = _SPACE + _LETTERS + "0123456789!#&()*+,-./:;<=>?@[]_{|}~'\""
    return isinstance(item, Set) and set(accepted(item, shown) or "x") <= set(_SPACE)


def accepts(item: Item, char: str) -> bool:
    """Whether a part that stands for one character, or what it repeats, accepts this one."""
    if isinstance(item, Repeat):
        return accepts(item.item, char)
    if isinstance(item, Dot):
        return char != "\n" or bool(item.flags & re.DOTALL)
    if isinstance(item, Character):
        return item.char.lower() == char.lower()
    if isinstance(item, Group) and item.kind in ("capture", "plain", "atomic"):
        return any(
            len(option.items) == 1 and accepts(option.items[0], char)
            for option in item.body.options
        )
    return isinstance(item, Set) and bool(accepted(item, char))


def accepted(item: Set, characters: str) -> str:
    """Those of some characters that a set accepts."""
    return _accepted(item.text, item.flags & (re.IGNORECASE | re.ASCII), characters)


@lru_cache(maxsize=4096)
def _accepted(text: str, flags: int, characters: str) -> str:
    return Set(0, 0, flags, text).accepted(characters)
