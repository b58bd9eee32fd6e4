"""Bytes of a JSON document from a program we do not know, made safe for a streaming parser."""

from __future__ import annotations

import codecs
import re
from array import array
from itertools import accumulate
from typing import IO

import ijson

TEXT_LIMIT = 64 * 1024 * 1024
"""Bytes of one text in a document; a document with a longer one is not read on."""
DEPTH_LIMIT = 250
"""Levels of lists and objects; a parser's paths grow with the square of it."""

# Only between texts: brackets as steps up and down, and what JSON has no word for.
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))
_STRANGE = re.compile(rb"NaN|Infinity|[0-9]{20}|9[2-9][0-9]{17}|[eE]\+?[0-9]{3}")
_TOKEN = re.compile(
    rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\Z)|-?(?:NaN|Infinity|[0-9][0-9.eE+\-]*)', re.DOTALL
)
_WORD = re.compile(rb"[-+.0-9A-Za-z]{1,400}\Z")
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_UNFINISHED = re.compile(
    rb"\\(?:u(?:[0-9a-fA-F]{0,3}|[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?))?\Z"
)
_LONGEST = 12
"""Bytes of an escape, which may be a pair."""
_HELD = 400


class JsonStream:
    """What a JSON parser may be fed, read from a stream.

    What is no UTF-8 and halves of surrogate pairs are replaced; NaN, infinities and numbers beyond
    the machine's become null.

    Args:
        stream: the document.

    Raises:
        ijson.JSONError: while reading: a text has no end, or it is nested too deep.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._since_quote = 0
        self._held = b""
        self._inside = False  # of a text, where the last piece ended
        self._depth = 0

    def read(self, size: int = -1) -> bytes:
        while True:
            data = self._stream.read(size)
            piece = self._held + self._utf8(data)
            self._held = b""
            if data:
                piece = self._whole_tokens(piece)
            if piece or not data:
                # An empty answer would be taken for the end.
                return self._checked(piece)

    def _utf8(self, data: bytes) -> bytes:
        if data.isascii() and not self._decoder.getstate()[0]:
            return data
        return self._decoder.decode(data, final=not data).encode()

    def _whole_tokens(self, piece: bytes) -> bytes:
        """The piece without a last escape or number that may go on in the next one."""
        cut = _before_escape(piece, len(piece))
        word = _WORD.search(piece, max(0, cut - _HELD), cut)
        if word and word.start() > cut - _HELD:
            cut = _before_escape(piece, word.start())
        self._held = piece[cut:]
        return piece[:cut]

    def _checked(self, piece: bytes) -> bytes:
        texts = piece.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        between = b"".join(texts[self._inside :: 2])
        self._measure(piece, len(texts) > 1)
        self._descend(between)
        piece = _ESCAPE.sub(_whole_escape, piece) if _HALF.search(piece) else piece
        inside, self._inside = self._inside, self._inside ^ (len(texts) % 2 == 0)
        return _mended(piece, inside) if _STRANGE.search(between) else piece

    def _measure(self, piece: bytes, quoted: bool) -> None:
        self._since_quote = len(piece) - piece.rfind(b'"') if quoted else self._since_quote
        self._since_quote += 0 if quoted else len(piece)
        if self._since_quote > TEXT_LIMIT:
            raise ijson.JSONError(f"a text in it is longer than {TEXT_LIMIT // 1024**2} MiB")

    def _descend(self, between: bytes) -> None:
        steps = array("b", between.translate(_STEPS, _NO_BRACKETS))
        deepest = max(accumulate(steps, initial=self._depth))
        if deepest > DEPTH_LIMIT:
            raise ijson.JSONError(f"it is nested more than {DEPTH_LIMIT} levels deep")
        self._depth = max(0, self._depth + sum(steps))


def _before_escape(piece: bytes, end: int) -> int:
    """Where an escape begins that such an end of the piece would cut off; else the end."""
    at = max(0, end - _LONGEST)
    while found := _UNFINISHED.search(piece, at, end):
        at = found.start() + 1
        before = piece[:at]
        if (len(before) - len(before.rstrip(b"\\"))) % 2:
            return found.start()
    return end


def _whole_escape(match: re.Match[bytes]) -> bytes:
    return b"\\ufffd" if match[1] else match[0]


def _mended(piece: bytes, inside: bool) -> bytes:
    """The piece with null for every number that JSON or the machine has no place for."""

    def replace(match: re.Match[bytes]) -> bytes:
        token = match.group()
        return token if token.startswith(b'"') or _fits(token) else b"null"

    # The rest of a text that began in an earlier piece is made one that begins here.
    mended = _TOKEN.sub(replace, b'"' + piece if inside else piece)
    return mended[1:] if inside else mended


def _fits(token: bytes) -> bool:
    try:
        if token.lstrip(b"-").isdigit():
            return len(token) <= 20 and -(2**63) < int(token) < 2**63
        return float(token) - float(token) == 0.0
    except ValueError:
        return True  # no number at all: the parser says so
