"""Many patterns searched together: a value is looked at once for all of them.

Values stand one a line in a text, in which a set of all patterns tells which may be there at all;
only those are searched in it. Values in ASCII without line breaks stand there as they are, others
as their characters matter to the patterns. What cannot be told so is left to the plain search of
one pattern, and only for the values in which its loose form is found.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from operator import not_
from typing import NamedTuple

from opsdrill.patterns.linear import Program
from opsdrill.patterns.net import Net, Strand, find_lines
from opsdrill.patterns.pattern import Pattern
from opsdrill.patterns.searcher import Found, Searched, Span
from opsdrill.patterns.sifted import BLOCK, Alphabet, parts
from opsdrill.patterns.translation import (
    LINE,
    WOVEN,
    WOVEN_ENDED,
    Form,
    NoTranslation,
    Writing,
)
from opsdrill.patterns.weave import Weave

NOTHING = Found()

PART = 2048
"""About so many bytes of a text are looked at together."""

Plain = Callable[[Pattern, Sequence[str]], Searched]
"""The search of one pattern."""


@dataclass(slots=True)
class _Tally:
    """What is known of one pattern so far."""

    count: int = 0
    first: list[tuple[int, Span]] = field(default_factory=list)
    left: set[int] = field(default_factory=set)


_Tallies = defaultdict[int, _Tally]


class _Some(NamedTuple):
    """Some of all values, with their places."""

    values: Sequence[str]
    places: Sequence[int]

    def apart(self, chosen: list[bool]) -> tuple[_Some, _Some]:
        """Those chosen, and the others."""
        if True not in chosen:
            return _NONE, self
        return self._kept(chosen), self._kept(list(map(not_, chosen)))

    def _kept(self, chosen: list[bool]) -> _Some:
        return _Some(list(compress(self.values, chosen)), list(compress(self.places, chosen)))


_NONE = _Some((), ())


class Bulk:
    """Patterns that are searched together, as `re.search` finds each of them in each value.

    Args:
        patterns: what to search.
        plain: the search of one pattern, for what is left.
    """

    def __init__(self, patterns: Sequence[Pattern], plain: Plain) -> None:
        self._patterns = tuple(patterns)
        self._plain = plain
        self._woven = _Woven(self._patterns)

    def search(self, values: Sequence[str], shown: int) -> tuple[Found, ...]:
        """What was found of each pattern; at most `shown` values of each are told with a span.

        Raises:
            OpsDrillError: as the plain search.
        """
        if not values or not self._patterns:
            return (NOTHING,) * len(self._patterns)
        of: _Tallies = defaultdict(_Tally)
        together = "\0".join(values)
        if len(together) > BLOCK or "" in values:
            self._look_in_parts(values, shown, of)
        else:
            self._look_by_kind(_Some(values, range(len(values))), together, shown, of)
        found = [NOTHING] * len(self._patterns)
        for number, tally in of.items():
            found[number] = self._found(number, tally, values, shown)
        return tuple(found)

    def _look_in_parts(self, values: Sequence[str], shown: int, of: _Tallies) -> None:
        fitting = [place for place, value in enumerate(values) if 0 < len(value) <= BLOCK]
        for part in parts(values, fitting):
            some = _Some([values[place] for place in part], part)
            self._look_by_kind(some, "\0".join(some.values), shown, of)
        self._leave(set(range(len(values))).difference(fitting), of)

    def _look_by_kind(self, some: _Some, together: str, shown: int, of: _Tallies) -> None:
        """Search values that fill a block at most, none of them empty.

        Args:
            together: all of them with a NUL between any two.
        """
        breaks = "\n" in together
        nul = together.count("\0") >= len(some.values)
        if not breaks and together.isascii():
            lines = "\n".join(some.values) if nul else together.replace("\0", "\n")
            _look(self._lines, lines.encode(), some, shown, of)
            return
        if breaks and self._woven.last_break:
            # At a line break that ends a value `$` means two places.
            ended, rest = some.apart([value[-1] == "\n" for value in some.values])
            if ended.values:
                self._look_woven(ended, None, shown, of, ended=True, nul=nul)
                self._look_woven(rest, None, shown, of, ended=False, nul=nul)
                return
        self._look_woven(some, together, shown, of, ended=False, nul=nul)

    def _look_woven(
        self, some: _Some, together: str | None, shown: int, of: _Tallies, *, ended: bool, nul: bool
    ) -> None:
        """Search values of any characters."""
        if not some.values:
            return
        text = self._woven.encode(some.values, together, nul=nul)
        if text is not None:
            _look(self._woven.net(ended=ended), text, some, shown, of)
            return
        foreign, rest = some.apart([not value.isascii() for value in some.values])
        self._leave((foreign if foreign.values else some).places, of)
        if foreign.values:
            self._look_woven(rest, None, shown, of, ended=ended, nul=nul)

    def _leave(self, places: Collection[int], of: _Tallies) -> None:
        """Leave values to the plain search of every pattern."""
        if places:
            for number in range(len(self._patterns)):
                of[number].left.update(places)

    def _found(self, number: int, of: _Tally, values: Sequence[str], shown: int) -> Found:
        exhausted: tuple[int, ...] = ()
        if of.left:
            left = sorted(of.left)
            searched = self._plain(self._patterns[number], [values[place] for place in left])
            pairs = zip(left, searched.spans, strict=True)
            hits = [(place, span) for place, span in pairs if span is not None]
            of.count += len(hits)
            of.first += hits
            exhausted = tuple(left[each] for each in searched.exhausted)
        of.first.sort()
        return Found(of.count, tuple(of.first[:shown]), exhausted)

    @cached_property
    def _lines(self) -> Net:
        """For values in ASCII without line breaks."""
        codes = Alphabet().codes
        return Net([_strand(pattern, codes, LINE) for pattern in self._patterns])


def _look(net: Net, text: bytes, some: _Some, shown: int, of: _Tallies) -> None:
    """Search a text of values, one a line and one byte a character.

    A look at a part is quick, and a pattern that may be there is searched in that part alone.
    """
    values, places = some
    lengths = list(map(len, values))
    step = max(1, PART * len(values) // len(text))
    told: dict[int, int] = defaultdict(int)
    begin, touched = 0, net.touched
    for first in range(0, len(values), step):
        own = lengths[first : first + step]
        end = begin + sum(own) + len(own) - 1
        part = text[begin:end]
        begin = end + 1
        for number in touched(part):
            strand, there = net.strands[number], places[first : first + step]
            if strand.program is None:
                of[number].left.update(there)
            elif not strand.exact:
                _, lines = find_lines(strand.program, part, len(there))
                of[number].left.update([there[line] for line, _ in lines])
            else:
                count, lines = find_lines(strand.program, part, shown - told[number])
                of[number].count += count
                of[number].first += [(there[line], span) for line, span in lines]
                told[number] += len(lines)


class _Woven:
    """The patterns over an alphabet for all other values; made when first needed."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._patterns = patterns
        self._size = 0
        self._nets: dict[bool, Net] = {}

    @cached_property
    def _writings(self) -> list[Writing]:
        """Each pattern that can be written at all, for what is in it."""
        found = []
        for pattern in self._patterns:
            writing = Writing(pattern.tree, Alphabet().codes)
            with suppress(NoTranslation):
                writing.written(replace(LINE, loose=True))
                found.append(writing)
        return found

    @cached_property
    def _weave(self) -> Weave:
        return Weave({place for writing in self._writings for place in writing.places})

    @cached_property
    def last_break(self) -> bool:
        """On a value that ends with a line break some pattern may differ."""
        return any(writing.last_break for writing in self._writings)

    def encode(self, values: Sequence[str], together: str | None, *, nul: bool) -> bytes | None:
        """The values one a line; None where their characters do not all get a byte."""
        if nul:
            return self._weave.encode_each(values)
        return self._weave.encode("\0".join(values) if together is None else together)

    def net(self, *, ended: bool) -> Net:
        """The programs for values that end with a line break, or for others."""
        codes = self._weave.codes
        if len(codes) != self._size:  # a character came that is like none before
            self._nets.clear()
            self._size = len(codes)
        if ended not in self._nets:
            form = WOVEN_ENDED if ended else WOVEN
            self._nets[ended] = Net([_strand(each, codes, form) for each in self._patterns])
        return self._nets[ended]


def _strand(pattern: Pattern, codes: Mapping[str, int], form: Form) -> Strand:
    if form is LINE and pattern.linear is not None:
        return Strand(pattern.linear.lines, exact=True)
    for tried in (form, replace(form, loose=True)):
        with suppress(NoTranslation):
            program = Program(Writing(pattern.tree, codes).written(tried))
            return Strand(program, exact=not tried.loose)
    return Strand(None, exact=False)
