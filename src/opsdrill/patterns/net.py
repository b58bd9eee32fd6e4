"""Many patterns over one alphabet: one look at a text tells which of them may be in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import re2

from opsdrill.patterns.linear import MOST_STEPS, Program
from opsdrill.patterns.searcher import Span
from opsdrill.patterns.sifted import BLOCK

SET_SIZE = MOST_STEPS // BLOCK
"""Instructions of all programs in a set: a look at a block then ends as soon as a search does."""
SET_MEMORY = 2 * 1024**2
ALL_SETS_MEMORY = 64 * 1024**2
LEAST_MEMORY = 256 * 1024
"""Bytes that a set may take with all it remembers: one; all together; one of very many."""


@dataclass(frozen=True, slots=True)
class Strand:
    """A pattern over the alphabet of a net.

    Attributes:
        program: for values that stand one a line; None: nothing can be told about any value.
        exact: it finds just what `re` finds; else it is found wherever that is, and maybe
            elsewhere.
    """

    program: Program | None
    exact: bool


class Net:
    """The programs of many patterns, and sets of them for looking at a text once."""

    def __init__(self, strands: Sequence[Strand]) -> None:
        self.strands = tuple(strands)
        self._blind = [n for n, strand in enumerate(strands) if strand.program is None]
        parts = list(_parts(self.strands))
        memory = min(SET_MEMORY, max(LEAST_MEMORY, ALL_SETS_MEMORY // max(1, len(parts))))
        self._sets = [_Set(self.strands, part, memory) for part in parts]
        self.touched: Callable[[bytes], Sequence[int]] = self._touched
        """The numbers of all patterns that may be in some line of a text; no other is."""
        if len(self._sets) == 1 and not self._blind:
            self.touched = self._sets[0].touched  # the same, one call less

    def _touched(self, text: bytes) -> list[int]:
        found = list(self._blind)
        for each in self._sets:
            found += each.touched(text)
        return found


class _Set:
    """Some programs as one, which tells which of them are found in a text but not where."""

    def __init__(self, strands: Sequence[Strand], numbers: Sequence[int], memory: int) -> None:
        self._numbers = numbers
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.never_capture = True
        options.log_errors = False
        options.max_mem = memory
        made = re2.Set.SearchSet(options)
        try:
            for number in numbers:
                program = strands[number].program
                made.Add(b"" if program is None else program.text.encode("ascii"))
            # The engine says the same when nothing is found and when memory ran out; this tells.
            # It is found at the end alone: what is found everywhere is noted at every byte.
            made.Add(rb"\z")
            made.Compile()
        except re2.error:
            self._match = None
        else:
            self._match = made._set.Match  # the public `Match` only adds a call

    def touched(self, text: bytes) -> Sequence[int]:
        if self._match is not None:
            found: list[int] = self._match(text)
            sentinel = len(self._numbers)
            if len(found) == 1 and found[0] == sentinel:
                return ()
            if sentinel in found:
                numbers = self._numbers
                return [numbers[each] for each in found if each != sentinel]
        return self._numbers


def _parts(strands: Sequence[Strand]) -> Iterator[list[int]]:
    """The numbers of the patterns that have a program, in parts that a set can hold."""
    part: list[int] = []
    room = SET_SIZE
    for number, strand in enumerate(strands):
        if strand.program is None:
            continue
        room -= strand.program.size
        if room < 0 and part:
            yield part
            part, room = [], SET_SIZE - strand.program.size
        part.append(number)
    if part:
        yield part


def find_lines(program: Program, text: bytes, shown: int) -> tuple[int, list[tuple[int, Span]]]:
    """In how many lines of `text` a program is found, and where in the first of them.

    Returns:
        The count, and for each of the first `shown` the line's number and the span within it.
    """
    match, anywhere, size = program.match, program.anywhere, len(text)
    first: list[tuple[int, Span]] = []
    count = begin = line = counted = 0
    while True:
        start, end = match(anywhere, text, begin, size)[0]  # as `find`, without its call
        if start < 0:
            return count, first
        if count < shown:
            line += text.count(b"\n", counted, start)
            counted = start
            head = text.rfind(b"\n", 0, start) + 1
            first.append((line, (start - head, end - head)))
        count += 1
        begin = text.find(b"\n", end) + 1
        if not begin:
            return count, first
