"""The linear-time engine, for patterns and values where it finds exactly what `re` finds."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

import re2

from opsdrill.patterns.sifted import BLOCK, Block, Sifted
from opsdrill.patterns.translation import NoTranslation, Translation

MOST_STEPS = 200_000_000
"""Instructions of a program times characters of a text: at worst about a second, as it cannot be
ended from outside. What would take more goes to the search that can."""

_Spans = list[tuple[int, int] | None]


class Linear:
    """A pattern for the linear-time engine.

    Raises:
        NoTranslation: the engine may differ from `re`, or the pattern is too large for it.
    """

    def __init__(self, pattern: str) -> None:
        self._translation = Translation(pattern)
        self._lines = _Program(self._translation.line)
        if self._lines.size * BLOCK > MOST_STEPS:
            raise NoTranslation

    @cached_property
    def _text(self) -> _Program | None:
        try:
            return _Program(self._translation.text)
        except NoTranslation:
            return None

    def search(self, sifted: Sifted, spans: _Spans) -> list[int]:
        """Put what can be found here into `spans`.

        Returns:
            The places of the values left over, ascending: not ASCII, or too long, or such that
            this pattern may differ on them.
        """
        for block in sifted.lines:
            _search_block(self._lines, block, spans)
        left = list(sifted.foreign)
        single = list(sifted.long)
        if self._text is not None and not self._translation.positions:
            for block in sifted.texts:
                _search_block(self._text, block, spans)
        else:
            single += (place for block in sifted.texts for place in block.places)
        left += (
            place for place in single if not self._search_single(sifted.values[place], place, spans)
        )
        if sifted.empty:
            left += self._search_empty(sifted.empty, spans)
        return sorted(left)

    def _search_single(self, value: str, place: int, spans: _Spans) -> bool:
        """Search one value; False where that must be left to `re`."""
        program = self._text
        if (
            program is None
            or program.size * len(value) > MOST_STEPS
            or (self._translation.last_break and value.endswith("\n"))
        ):
            return False
        start, end = program.find(value.encode("ascii"), 0, len(value))
        spans[place] = (start, end) if start >= 0 else None
        return True

    def _search_empty(self, places: list[int], spans: _Spans) -> list[int]:
        program = self._text
        if program is None or self._translation.emptiness:
            return places
        start, end = program.find(b"", 0, 0)
        for place in places:
            spans[place] = (start, end) if start >= 0 else None
        return []


def _search_block(program: _Program, block: Block, spans: _Spans) -> None:
    """Search a block's values, one match after the other, each from the start of a value on."""
    starts, places, text, size = block.starts, block.places, block.text, len(block.text)
    begin = 0
    while True:
        start, end = program.find(text, begin, size)
        if start < 0:
            return
        number = bisect_right(starts, start) - 1
        first = starts[number]
        spans[places[number]] = (start - first, end - first)
        if number + 1 == len(starts):
            return
        begin = starts[number + 1]


class _Program:
    """A compiled program of the engine, over bytes.

    Raises:
        NoTranslation: the engine refuses it, for its size.
    """

    def __init__(self, text: str) -> None:
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.never_capture = True
        options.log_errors = False
        try:
            program = re2.compile(text.encode("ascii"), options)
        except re2.error:
            raise NoTranslation from None
        self.size = max(int(program.programsize), int(program.reverseprogramsize))
        # The public `search` makes a match object for each; this is what it calls.
        self._match = program._regexp.Match
        self._anywhere = re2._Anchor.UNANCHORED

    def find(self, text: bytes, begin: int, end: int) -> tuple[int, int]:
        """The first match from `begin` on as a span of `text`; (-1, -1) for none."""
        span: tuple[int, int] = self._match(self._anywhere, text, begin, end)[0]
        return span
