"""The linear-time engine, for patterns and values where it finds exactly what `re` finds."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import re2

from opsdrill.patterns.merging import merge, table
from opsdrill.patterns.sifted import BLOCK, Alphabet, Block, Group, Sifted
from opsdrill.patterns.translation import NoTranslation, Translation, Tree, parse

MOST_STEPS = 200_000_000
"""Instructions of a program times characters of a text: at worst about a second, as it cannot be
ended from outside. What would take more goes to the search that can."""

MEMORY = 2 * 1024**2
"""Bytes that a program may take with all it remembers while it searches."""

_KEPT = 4  # machines of a pattern for foreign alphabets

_Spans = list[tuple[int, int] | None]


class Linear:
    """A pattern for the linear-time engine.

    Raises:
        NoTranslation: the engine may differ from `re`, or the pattern is too large for it.
    """

    def __init__(self, pattern: str) -> None:
        self._tree = parse(pattern)
        self._plain = _Machine(self._tree, Alphabet(), words=False)
        self._foreign: dict[tuple[str, bool], _Machine | None] = {}

    @property
    def lines(self) -> Program:
        """For values in ASCII without line breaks, one a line."""
        return self._plain.lines

    def search(self, sifted: Sifted, spans: _Spans) -> list[int]:
        """Put what can be found here into `spans`.

        Returns:
            The places of the values left over, ascending: too long, or with too many different
            foreign characters, or such that this pattern may differ on them.
        """
        left = list(sifted.rest)
        for group in sifted.groups:
            machine = self._machine(group)
            if machine is None:
                left += group.places
            else:
                left += machine.search(group, sifted.values, spans)
        if sifted.empty:
            left += self._plain.search_empty(sifted.empty, spans)
        return sorted(left)

    def _machine(self, group: Group) -> _Machine | None:
        if not group.alphabet.foreign:
            return self._plain
        key = (group.alphabet.foreign, group.words)
        if key not in self._foreign:
            if len(self._foreign) >= _KEPT:
                self._foreign.clear()
            try:
                self._foreign[key] = _Machine(self._tree, group.alphabet, words=group.words)
            except NoTranslation:
                self._foreign[key] = None
        return self._foreign.get(key)


class _Machine:
    """The programs of one pattern over one alphabet.

    Args:
        words: some foreign characters belong to words.

    Raises:
        NoTranslation: as `Linear`.
    """

    def __init__(self, tree: Tree, alphabet: Alphabet, *, words: bool) -> None:
        self._alphabet = alphabet
        self._table: bytes | None = None
        translation = Translation(tree, alphabet.codes)
        if words and translation.edges:
            merged = merge(alphabet.codes, translation.sets)
            if merged is None:
                raise NoTranslation
            self._table = table(alphabet.codes, merged)
            translation = Translation(tree, merged)
        self._translation = translation
        self.lines = Program(translation.line)
        self._text = Program(translation.text)

    def search(self, group: Group, values: Sequence[str], spans: _Spans) -> list[int]:
        """Search the values of a group; returns the places of those left over."""
        for block in group.lines:
            self._search_block(self.lines, block, spans)
        single = list(group.long)
        if self._translation.positions:
            single += (place for block in group.texts for place in block.places)
        else:
            for block in group.texts:
                self._search_block(self._text, block, spans)
        return [place for place in single if not self._search_single(values[place], place, spans)]

    def _search_block(self, program: Program, block: Block, spans: _Spans) -> None:
        """Search a block's values, one match after the other, each from the start of a value."""
        text = block.text if self._table is None else block.text.translate(self._table)
        starts, places, size = block.starts, block.places, len(text)
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

    def _search_single(self, value: str, place: int, spans: _Spans) -> bool:
        """Search one value; False where that must be left to `re`."""
        if self._text.size * len(value) > MOST_STEPS:
            return False
        if self._translation.last_break and value.endswith("\n"):
            return False
        text = self._alphabet.encode(value)
        if self._table is not None:
            text = text.translate(self._table)
        start, end = self._text.find(text, 0, len(text))
        spans[place] = (start, end) if start >= 0 else None
        return True

    def search_empty(self, places: list[int], spans: _Spans) -> list[int]:
        """Search empty values, all alike; returns the places of those left over."""
        if self._translation.emptiness:
            return places
        start, end = self._text.find(b"", 0, 0)
        for place in places:
            spans[place] = (start, end) if start >= 0 else None
        return []


class Program:
    """A compiled program of the engine, over bytes.

    Attributes:
        text: what it was compiled from.
        size: its instructions.

    Raises:
        NoTranslation: it is too large.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.never_capture = True
        options.log_errors = False
        options.max_mem = MEMORY
        try:
            program = re2.compile(text.encode("ascii"), options)
        except re2.error:
            raise NoTranslation from None
        self.size = max(int(program.programsize), int(program.reverseprogramsize))
        if self.size * BLOCK > MOST_STEPS:
            raise NoTranslation
        # The public `search` makes a match object for each; this is what it calls.
        self.match = program._regexp.Match
        self.anywhere = re2._Anchor.UNANCHORED

    def find(self, text: bytes, begin: int, end: int) -> tuple[int, int]:
        """The first match from `begin` on as a span of `text`; (-1, -1) for none."""
        span: tuple[int, int] = self.match(self.anywhere, text, begin, end)[0]
        return span
