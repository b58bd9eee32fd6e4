"""YAML 1.2 with positions, read so that nothing is guessed.

A plain scalar is a number only if it is a JSON number without a leading zero or a trailing zero
in its fraction, and true, false, null only as those words. What YAML has beyond plain data
(aliases, merge keys, tags, several documents) is refused, for in a scenario it is nearly always a
shell text or a pattern that should have been quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    ScalarEvent,
    SequenceStartEvent,
)
from ruamel.yaml.reader import ReaderError

from opsdrill.scenarios.document import (
    DEPTH_LIMIT,
    NODE_LIMIT,
    Document,
    Location,
    Place,
    Places,
    joined_surrogates,
    place_at,
    unreadable,
)

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<fraction>\.[0-9]*[1-9])?(?P<power>[eE][+-]?[0-9]+)?")
_WORDS = {"true": True, "false": False, "null": None, "": None}
_WIDE = re.compile(r"\\U([0-9a-fA-F]{8})")
_DIRECTIVE = re.compile(r"^%", re.MULTILINE)
_LAST = 0x10FFFF
_COMMENT = re.compile(r" +#")
_INDENT_TAB = re.compile(r"\n[ \t]*\t")
# The library takes these for line breaks, as YAML 1.1 did; in 1.2 they are characters like others.
_NOT_BREAKS = "\x85\u2028\u2029"


def parse_yaml(text: str, file: str | None = None) -> Document:
    """The one document in a YAML text.

    Raises:
        InvalidInput: the text breaks the rules; names line and column.
    """
    return _Reader(text, file).document()


class _Reader:
    def __init__(self, text: str, file: str | None) -> None:
        self._file = file
        self._text, self._restore = _hide_breaks(text)
        self._places = Places()
        self._nodes = 0
        self._spans: list[tuple[int, int]] = []
        self._events = self._read()

    def document(self) -> Document:
        next(self._events)  # the start of the stream
        start = next(self._events)
        if not isinstance(start, DocumentStartEvent):
            self._stop("is empty", Place(1, 1))
        directive = _DIRECTIVE.search(self._text, 0, start.start_mark.index)
        if directive is not None:
            self._stop(
                "has a `%` directive; leave it out, YAML 1.2 is meant",
                place_at(self._text, directive.start()),
            )
        data = self._node(next(self._events), (), None)
        next(self._events)  # the end of the document
        after = next(self._events)
        if isinstance(after, DocumentStartEvent):
            self._stop("a second document starts here; a file holds one", _place(after.start_mark))
        self._refuse_tabs()
        return Document(data, self._file, lambda: self._places)

    def _read(self) -> Iterator[Event]:
        """The parser's events, its errors in our words."""
        parser = YAML(typ="safe", pure=True)
        try:
            yield from parser.parse(self._text)
        except ReaderError as error:
            self._stop(
                f"the character U+{ord(self._text[error.position]):04X} cannot stand in YAML; "
                'write it as an escape in double quotes, like "\\a"',
                place_at(self._text, error.position),
            )
        except MarkedYAMLError as error:
            self._stop(*_explained(error, self._text))
        except (YAMLError, ValueError, OverflowError) as error:
            # chr() of an escape past U+10FFFF, and what the library raises without a mark
            at = self._spans[-1][1] if self._spans else 0
            wide = next((e for e in _WIDE.finditer(self._text, at) if int(e[1], 16) > _LAST), None)
            self._stop(
                f"cannot be understood as YAML: {error}" if wide is None else "is no character",
                place_at(self._text, at if wide is None else wide.start()),
            )

    def _stop(self, message: str, place: Place) -> NoReturn:
        unreadable(message, self._file, place)

    def _node(self, event: Any, at: Location, key: Place | None) -> object:
        place = _place(event.start_mark)
        self._refuse_extras(event, place)
        self._nodes += 1
        if self._nodes > NODE_LIMIT:
            self._stop(f"has more than {NODE_LIMIT} values", place)
        if len(at) >= DEPTH_LIMIT and not isinstance(event, ScalarEvent):
            self._stop(f"is nested more than {DEPTH_LIMIT} deep", place)
        if isinstance(event, ScalarEvent):
            empty = event.style is None and event.value == ""
            self._places.values[at] = key if empty and key is not None else place
            self._places.spans[at] = (event.start_mark.index, event.end_mark.index)
            return self._scalar(event, place, at)
        self._places.values[at] = place
        return self._list(at) if isinstance(event, SequenceStartEvent) else self._object(at)

    def _list(self, at: Location) -> list[object]:
        items: list[object] = []
        while isinstance(event := next(self._events), _NODES):
            items.append(self._node(event, (*at, len(items)), None))
        return items

    def _object(self, at: Location) -> dict[str, object]:
        items: dict[str, object] = {}
        while isinstance(event := next(self._events), _NODES):
            key, place = self._key(event), _place(event.start_mark)
            location = (*at, key)
            if key in items:
                first = self._places.keys[location].line
                self._stop(f"has the key {_shown(key)} twice; it is on line {first} too", place)
            self._places.keys[location] = place
            items[key] = self._node(next(self._events), location, place)
        return items

    def _key(self, event: Any) -> str:
        place = _place(event.start_mark)
        self._refuse_extras(event, place)
        if not isinstance(event, ScalarEvent):
            self._stop("a key must be a text; quote what starts with [ or {", place)
        if event.style is None and event.value == "<<":
            self._stop("`<<` merges objects in YAML, which is refused here; write the keys", place)
        if event.style is None and event.value == "":
            self._stop("a key is missing before the colon", place)
        return self._words(event, place, ())

    def _refuse_extras(self, event: Any, place: Place) -> None:
        if isinstance(event, AliasEvent):
            self._stop(
                f"{_shown('*' + str(event.anchor))} is an alias in YAML, which is refused here; "
                "put a text that starts with * in quotes",
                place,
            )
        if event.anchor is not None:
            self._stop(
                f"{_shown('&' + str(event.anchor))} is an anchor in YAML, which is refused here; "
                "put a text that starts with & in quotes",
                place,
            )
        if event.ctag is not None:
            self._stop(
                f"{_shown(str(event.ctag))} is a tag in YAML, which is refused here; "
                "put a text that starts with ! in quotes",
                place,
            )

    def _scalar(self, event: Any, place: Place, at: Location) -> object:
        value = self._words(event, place, at)
        if event.style is not None:
            return value
        if value in _WORDS:
            return _WORDS[value]
        number = _NUMBER.fullmatch(value)
        if number is None:
            return value
        if len(value) > 300:
            self._stop("is a number of more than 300 characters; put a text in quotes", place)
        if number["fraction"] is None and number["power"] is None:
            return int(value)
        if abs(float(value)) == float("inf"):
            self._stop("is a number too large to be kept; put a text in quotes", place)
        return float(value)

    def _words(self, event: Any, place: Place, at: Location) -> str:
        start, end = event.start_mark.index, event.end_mark.index
        self._spans.append((start, end))
        if event.style is None and _COMMENT.match(self._text, end) and end > start:
            self._places.cut.add(at)
        if event.style in (None, '"', "'"):
            tab = _INDENT_TAB.search(self._text, start, end)
            if tab is not None:
                self._stop(_TAB, place_at(self._text, tab.end() - 1))
        text = joined_surrogates(event.value)
        if text is None:
            self._stop("holds one half of a surrogate pair, which is no character", place)
        return text.translate(self._restore)

    def _refuse_tabs(self) -> None:
        """Tabs are welcome inside a text or a comment, and nowhere else."""
        position = 0
        for start, end in [*self._spans, (len(self._text), len(self._text))]:
            offset = position
            for line in self._text[position:start].splitlines(keepends=True):
                tab = line.partition("#")[0].find("\t")
                if tab >= 0:
                    self._stop(_TAB, place_at(self._text, offset + tab))
                offset += len(line)
            position = max(position, end)


_NODES = (AliasEvent, ScalarEvent, SequenceStartEvent, MappingStartEvent)
_TAB = "a tab cannot stand here; indent with spaces, and put a text that holds one in quotes"


def _hide_breaks(text: str) -> tuple[str, dict[int, str]]:
    """The text with the false line breaks replaced by characters that it does not hold."""
    found = [char for char in _NOT_BREAKS if char in text]
    if not found:
        return text, {}
    free = (chr(code) for code in range(0xE000, 0xF900) if chr(code) not in text)
    stand_ins = dict(zip(found, free, strict=False))
    hidden = text.translate({ord(char): stand_in for char, stand_in in stand_ins.items()})
    return hidden, {ord(stand_in): char for char, stand_in in stand_ins.items()}


def _place(mark: Any) -> Place:
    return Place(mark.line + 1, mark.column + 1)


def _shown(text: str) -> str:
    return f"`{text[:40]}`" if text.isprintable() else ascii(text[:40])


def _explained(error: MarkedYAMLError, text: str) -> tuple[str, Place]:
    """The library's complaint as a sentence that says what to do, and its place."""
    mark = error.problem_mark or error.context_mark
    place = _place(mark) if mark is not None else Place(1, 1)
    problem, context = str(error.problem or ""), str(error.context or "")
    char = text[mark.index : mark.index + 1] if mark is not None else ""
    start = _place(error.context_mark) if error.context_mark is not None else place
    if char == "\t":
        return _TAB, place
    if "hexdec" in problem:
        return "an escape lacks hexadecimal digits; write \\\\ for a backslash", place
    if "escape" in problem or "escape sequence" in context:
        return (
            f"`\\{char if char.isprintable() else '?'}` is no escape in a double-quoted text; "
            "put the text in single quotes, or write \\\\ for each backslash",
            place,
        )
    if "mapping values are not allowed" in problem:
        return (
            "a key cannot stand here: indent it as the keys it belongs to, or put the text with "
            "the colon in quotes"
        ), place
    if "cannot start any token" in problem:
        return f"a text cannot start with {char!r}; put it in quotes", place
    if "alias" in context or "anchor" in context or "tag" in context or "tag handle" in problem:
        return "a text that starts with *, & or ! must be put in quotes", start
    if "quoted scalar" in context:
        return "the quote that opens here is never closed", start
    if "end of stream" in problem or "stream end" in problem:
        return "ends too early: a bracket or quote that opens here is never closed", start
    if "expected <block end>" in problem:
        return "is indented otherwise than what it belongs to, or needs quotes", place
    if "could not find expected ':'" in problem:
        return "has no colon after the key, or a text over several lines needs quotes", place
    return f"cannot be understood as YAML: {problem or context}", place
