"""JSON to the letter: duplicate keys, NaN and Infinity are refused, with line and column.

Reading goes through the standard library's C scanner. Where it finds something wrong, or a
problem needs its place, a slower reader of ours goes over the same text again.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import NoReturn, cast

from opsdrill.scenarios.document import (
    DEPTH_LIMIT,
    NODE_LIMIT,
    Document,
    Location,
    Place,
    Places,
    joined_surrogates,
    unreadable,
    without_lone_surrogates,
)

RECORD_DEPTH_LIMIT = 200
"""How deep lists and objects may be nested in a file that programs write."""

PLACES_LIMIT = 64 * 1024 * 1024
"""Characters of a recorded file up to which problems have a line; past it the path must do."""

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORD = re.compile(r"[A-Za-z]+")
_WORDS: dict[str, object] = {"true": True, "false": False, "null": None}
_SURROGATE = re.compile(r"\\u[dD][89abAB]|\\u[dD][c-fC-F]")


class _Wrong(ValueError):
    """Something is wrong; the slow reader will find out what and where."""


def parse_json(text: str, file: str | None = None, *, written: bool = True) -> Document:
    """The JSON value in a text.

    Args:
        text: the whole document.
        file: the name shown in problems.
        written: by people: nested at most `DEPTH_LIMIT` deep, half a surrogate pair is refused.
            In what programs wrote it is replaced by U+FFFD, so that one bad character of some
            output does not lose the whole record.

    Raises:
        InvalidInput: the text is not JSON; names line and column.
    """
    if written:
        reader = _Reader(text, file, DEPTH_LIMIT, written=True)
        return Document(reader.read(), file, lambda: reader.places)
    try:
        data = _DECODER.decode(text)
        if _too_deep(data):
            raise _Wrong("nested too deep")
    except (ValueError, RecursionError):
        data = _Reader(text, file, RECORD_DEPTH_LIMIT).read()
    if _SURROGATE.search(text) is not None:
        data = without_lone_surrogates(data)

    def places() -> Places:
        if len(text) > PLACES_LIMIT:
            return Places()
        reader = _Reader(text, file, RECORD_DEPTH_LIMIT)
        reader.read()
        return reader.places

    return Document(data, file, places)


def _too_deep(data: object) -> bool:
    level = [data] if isinstance(data, (dict, list)) else []
    for _ in range(RECORD_DEPTH_LIMIT):
        level = [
            item
            for container in level
            for item in (container.values() if isinstance(container, dict) else container)
            if isinstance(item, (dict, list))
        ]
    return bool(level)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Wrong("a key twice")
    return found


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _Wrong("too large")
    return value


def _no_constant(text: str) -> NoReturn:
    raise _Wrong(text)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_finite, parse_constant=_no_constant
)


class _Reader:
    def __init__(self, text: str, file: str | None, depth: int, *, written: bool = False):
        self._text = text
        self._file = file
        self._depth = depth
        self._written = written
        self._lines = [0, *(found.end() for found in re.finditer("\n", text))]
        self.places = Places()

    def read(self) -> object:
        if self._space(0) == len(self._text):
            self._stop("is empty", 0)
        data, end = self._value(self._space(0), ())
        end = self._space(end)
        if end < len(self._text):
            self._stop("the document is over, but something follows", end)
        return data

    def _space(self, at: int) -> int:
        found = _SPACE.match(self._text, at)
        return found.end() if found else at

    def _place(self, at: int) -> Place:
        line = bisect_right(self._lines, at)
        return Place(line, at - self._lines[line - 1] + 1)

    def _stop(self, message: str, at: int) -> NoReturn:
        unreadable(message, self._file, self._place(at))

    def _value(self, at: int, location: Location) -> tuple[object, int]:
        self.places.values[location] = self._place(at)
        if self._written and len(self.places.values) > NODE_LIMIT:
            self._stop(f"has more than {NODE_LIMIT} values", at)
        char = self._text[at : at + 1]
        if char and char in "{[":
            if len(location) >= self._depth:
                self._stop(f"is nested more than {self._depth} deep", at)
            return self._object(at, location) if char == "{" else self._list(at, location)
        if char == '"':
            text, end = self._string(at)
            self.places.spans[location] = (at, end)
            return text, end
        number = _NUMBER.match(self._text, at)
        if number is not None:
            return self._number(number), number.end()
        word = _WORD.match(self._text, at)
        if word is None:
            self._stop("a value is missing here" if char else "ends too early", at)
        if word.group() not in _WORDS:
            self._stop(f"`{word.group()[:40]}` is no JSON value; put a text in double quotes", at)
        return _WORDS[word.group()], word.end()

    def _number(self, found: re.Match[str]) -> int | float:
        if len(found.group()) > 300:
            self._stop("is a number of more than 300 characters", found.start())
        if found[1] is None and found[2] is None:
            return int(found.group())
        value = float(found.group())
        if not math.isfinite(value):
            self._stop("is a number too large to be kept", found.start())
        return value

    def _string(self, at: int) -> tuple[str, int]:
        try:
            text, end = cast("tuple[str, int]", scanstring(self._text, at + 1, True))
        except json.JSONDecodeError as error:
            self._stop(_STRING_FAULTS.get(error.msg.split(":")[0], error.msg), error.pos)
        whole = joined_surrogates(text) if self._written else text
        if whole is None:
            self._stop("holds one half of a surrogate pair, which is no character", at)
        return whole, end

    def _list(self, at: int, location: Location) -> tuple[list[object], int]:
        items: list[object] = []
        at = self._space(at + 1)
        if self._text.startswith("]", at):
            return items, at + 1
        while True:
            item, at = self._value(at, (*location, len(items)))
            items.append(item)
            at, over = self._next(at, "]")
            if over:
                return items, at

    def _object(self, at: int, location: Location) -> tuple[dict[str, object], int]:
        items: dict[str, object] = {}
        at = self._space(at + 1)
        if self._text.startswith("}", at):
            return items, at + 1
        while True:
            if not self._text.startswith('"', at):
                self._stop("a key in double quotes must stand here", at)
            start = at
            key, at = self._string(at)
            inner = (*location, key)
            if key in items:
                line = self.places.keys[inner].line
                self._stop(f"has the key {key[:40]!a} twice; it is on line {line} too", start)
            self.places.keys[inner] = self._place(start)
            at = self._space(at)
            if not self._text.startswith(":", at):
                self._stop("a colon must stand here", at)
            items[key], at = self._value(self._space(at + 1), inner)
            at, over = self._next(at, "}")
            if over:
                return items, at

    def _next(self, at: int, closing: str) -> tuple[int, bool]:
        """Past the comma to the next item, or past the closing bracket."""
        at = self._space(at)
        char = self._text[at : at + 1]
        if char == closing:
            return at + 1, True
        if char != ",":
            self._stop(f"a comma or {closing} must stand here" if char else "ends too early", at)
        after = self._space(at + 1)
        if self._text.startswith(closing, after):
            self._stop("a comma stands before the closing bracket; leave it out", at)
        return after, False


_STRING_FAULTS = {
    "Unterminated string starting at": "the quote that opens here is never closed",
    "Invalid control character at": "a line break or control character cannot stand in a text; "
    "write it as an escape like \\n",
    "Invalid \\escape": "is no escape of JSON; write \\\\ for a backslash",
    "Invalid \\uXXXX escape": "\\u needs four hexadecimal digits",
}
