"""Many patterns searched together: a value is looked at once for all of them.

Values stand one a line in a text, in which a set of all patterns tells which may be there at all;
only those are searched in it. Values in ASCII without line breaks stand there as they are, others
as their characters matter to the patterns. What cannot be told so is left to the plain search of
one pattern, and only for the values in which its loose form is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

from opsdrill.patterns.linear import Program
from opsdrill.patterns.net import Net, Strand, tally
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

Plain = Callable[[Pattern, Sequence[str]], Searched]
"""The search of one pattern."""


@dataclass(slots=True)
class _Tally:
    """What is known of one pattern so far."""

    count: int = 0
    first: list[tuple[int, Span]] = field(default_factory=list)
    left: set[int] = field(default_factory=set)


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
        tallies: dict[int, _Tally] = {}
        if "" in values or sum(map(len, values)) > BLOCK:
            self._look_in_parts(values, shown, tallies)
        else:
            self._look_by_kind(values, range(len(values)), shown, tallies)
        found = [NOTHING] * len(self._patterns)
        for number, of in tallies.items():
            found[number] = self._found(number, of, values, shown)
        return tuple(found)

    def _look_in_parts(self, values: Sequence[str], shown: int, tallies: dict[int, _Tally]) -> None:
        fitting = [place for place, value in enumerate(values) if 0 < len(value) <= BLOCK]
        for part in parts(values, fitting):
            self._look_by_kind(values, part, shown, tallies)
        self._leave(set(range(len(values))).difference(fitting), tallies)

    def _look_by_kind(
        self, values: Sequence[str], places: Sequence[int], shown: int, tallies: dict[int, _Tally]
    ) -> None:
        """Search values that fill a block at most; none is empty."""
        foreign = [at for at in places if not values[at].isascii()]
        if foreign:
            apart = set(foreign)
            places = [at for at in places if at not in apart]
        if places:
            chosen = [values[at] for at in places]
            text = "\n".join(chosen)
            if text.count("\n") == len(chosen) - 1:
                self._look(self._lines, text.encode(), places, shown, tallies)
            else:
                self._look_woven(values, places, shown, tallies)
        if foreign:
            self._look_woven(values, foreign, shown, tallies)

    def _look_woven(
        self, values: Sequence[str], places: Sequence[int], shown: int, tallies: dict[int, _Tally]
    ) -> None:
        """Search values of any characters; those that end with a line break stand apart."""
        apart = [at for at in places if values[at][-1] == "\n"]
        if apart:
            places = [at for at in places if values[at][-1] != "\n"]
        for kind, ended in ((places, False), (apart, True)):
            if not kind:
                continue
            text = self._woven.encode([values[at] for at in kind])
            if text is None:
                self._leave(kind, tallies)
            else:
                self._look(self._woven.net(ended=ended), text, kind, shown, tallies)

    def _leave(self, places: Iterable[int], tallies: dict[int, _Tally]) -> None:
        """Leave values to the plain search of every pattern."""
        left = tuple(places)
        for number in range(len(self._patterns)) if left else ():
            tallies.setdefault(number, _Tally()).left.update(left)

    def _look(
        self,
        net: Net,
        text: bytes,
        places: Sequence[int],
        shown: int,
        tallies: dict[int, _Tally],
    ) -> None:
        """Search a text of values, one a line; `places` are those of its lines."""
        for number in net.touched(text):
            strand = net.strands[number]
            of = tallies.setdefault(number, _Tally())
            if strand.program is None:
                of.left.update(places)
                continue
            most = shown if strand.exact else len(text)
            count, first = tally(strand.program, text, most)
            if strand.exact:
                of.count += count
                of.first += [(places[line], span) for line, span in first]
            else:
                of.left.update([places[line] for line, _ in first])

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


class _Woven:
    """The patterns over an alphabet for all other values; made when first needed."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._patterns = patterns
        self._size = 0
        self._nets: dict[bool, Net] = {}

    @cached_property
    def _weave(self) -> Weave:
        codes = Alphabet().codes
        places = set()
        for pattern in self._patterns:
            writing = Writing(pattern.tree, codes)
            with suppress(NoTranslation):
                writing.written(replace(LINE, loose=True))
                places |= writing.places
        return Weave(places)

    def encode(self, values: Sequence[str]) -> bytes | None:
        """The values one a line; None where their characters do not all get a byte."""
        return self._weave.encode(values)

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
