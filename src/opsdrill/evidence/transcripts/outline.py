"""Where the parts of a large JSON document stand in it, found without building any of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import IO

from opsdrill.evidence.transcripts.rows import row

_PIECE = 1024 * 1024
_KEY_LIMIT = 1000
# Not possessive: Python before 3.11.5 loses its place in a possessive repeat that fails half way.
_WHOLE_TEXT = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_SKIP_DEEP = re.compile(rb'[^"\[\]{}]*(?:' + _WHOLE_TEXT + rb'[^"\[\]{}]*)*', re.DOTALL)
_SKIP_SHALLOW = re.compile(rb'[^"\[\]{},:]*')
_IN_TEXT = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some bytes of a document: the first, and how many."""

    start: int
    length: int


@dataclass(slots=True)
class Outline:
    """What a document's outermost object holds.

    Args:
        parts: where the value of each wanted key stands; of a key that is there twice, the last.
        whole: the object has its end.
        end: bytes up to there.
    """

    parts: dict[str, Stretch] = field(default_factory=dict)
    whole: bool = False
    end: int = 0


def outline(stream: IO[bytes], wanted: Collection[str]) -> Outline:
    """Where the values of some keys of a document's outermost object stand."""
    found = Outline()
    last, key, start, at = b"", None, 0, 0
    for mark in _marks(stream):
        at = mark.at
        if mark.sign == b'"':
            last = mark.text
        elif mark.sign == b":" and key is None:
            key, start = row(last), at + 1
        elif mark.sign in (b",", b"}", b"") and mark.depth <= 1:
            if isinstance(key, str) and key in wanted:
                found.parts[key] = Stretch(start, at - start)
            key = None
            found.whole = mark.sign == b"}"
            found.end = at + 1
        elif mark.sign == b"[" and mark.depth == 1:
            break  # a list, not an object
    return found


def end_of(stream: IO[bytes]) -> int | None:
    """Bytes up to the end of a document that is an object or a list; None where it has none."""
    for mark in _marks(stream):
        if mark.depth == 1 and mark.sign in (b"}", b"]"):
            return mark.at + 1
    return None


def objects(stream: IO[bytes]) -> Iterator[Stretch]:
    """Where the objects in a document's outermost list stand; a last one may lack its end."""
    start: int | None = None
    for mark in _marks(stream):
        if mark.sign == b"{" and mark.depth == 1:
            return  # an object, not a list
        if mark.sign == b"{":
            start = mark.at
        elif mark.sign in (b"}", b"") and start is not None:
            yield Stretch(start, mark.at - start + len(mark.sign))
            start = None


@dataclass(slots=True)
class _Mark:
    """A sign on the outermost level or at its border; an empty one is the end of the bytes.

    `depth` is the level that the sign is on: 1 for what stands right in the outermost value.
    """

    sign: bytes
    at: int
    depth: int
    text: bytes = b""


def _marks(stream: IO[bytes]) -> Iterator[_Mark]:
    depth, inside, base = 0, False, 0
    text, held = b"", b""
    while fresh := stream.read(_PIECE):
        piece, place, held = held + fresh, 0, b""
        while place < len(piece):
            if inside:
                end = _end(_IN_TEXT, piece, place)
                text = (text + piece[place : min(end, place + _KEY_LIMIT)])[:_KEY_LIMIT]
                if piece[end : end + 1] == b"\\":
                    held = piece[end:]  # an escape that goes on in the next piece
                    break
                if end < len(piece):
                    inside = False
                    if depth == 1:
                        yield _Mark(b'"', base + end, depth, b'"' + text + b'"')
                place = end + 1
                continue
            place = _end(_SKIP_DEEP if depth > 1 else _SKIP_SHALLOW, piece, place)
            sign = piece[place : place + 1]
            if sign and sign in b"[{":
                depth += 1
            if sign == b'"':
                inside, text = True, b""
            elif sign and (depth == 1 or (depth == 2 and sign in b"[]{}")):
                yield _Mark(sign, base + place, depth)
            if sign and sign in b"]}":
                depth -= 1
                if depth <= 0:
                    return
            place += 1
        base += len(piece) - len(held)
    yield _Mark(b"", base + len(held), 1)


def _end(pattern: re.Pattern[bytes], piece: bytes, place: int) -> int:
    match = pattern.match(piece, place)
    return match.end() if match else place
