"""A pattern in the linear engine's syntax, made from the parse tree that `re` itself makes.

Nothing of the pattern's text is passed on. Every place that stands for one character becomes the
set of the characters of an alphabet that `re` accepts there, asked of `re` itself, so that
classes, flags and case folding cannot differ. The engine sees bytes, one a character, and never
learns what they mean. What remains are sequences, alternatives, repetition and positions,
in which the engine prefers the same match as `re`. Where that is not sure there is no
translation: look-around, back-references, conditions, atomic groups, possessive repetition, and
repetition of what can be empty. Such a pattern still has a loose form, without what the engine
has no words for: where that is not found, the pattern is not either.

The parser of `re` is private to Python. Versions of it that were not tried get no translation.
"""

from __future__ import annotations

import re
import re._compiler as re_compiler  # type: ignore[import-not-found]
import re._constants as op  # type: ignore[import-not-found]
import re._parser as re_parser  # type: ignore[import-not-found]
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

MOST_REPEATS = 1000
"""The engine refuses to count further."""

_TRIED = (3, 11) <= sys.version_info[:2] <= (3, 13)
_FLAGS = re.I | re.M | re.S | re.X | re.A | re.U
_NOTHING = r"[^\x00-\xff]"
_ANYTHING = r"[\x00-\x09\x0b-\xff]*"

_POSITIONS = {
    op.AT_BEGINNING_STRING: r"\A",
    op.AT_BEGINNING: r"\A",
    op.AT_BEGINNING_LINE: "(?m:^)",
    op.AT_END_STRING: r"\z",
    op.AT_END: r"\z",  # and before a last line break, which the caller keeps away
    op.AT_END_LINE: "(?m:$)",
    op.AT_BOUNDARY: r"\b",
    op.AT_NON_BOUNDARY: r"\B",
}

Tree: TypeAlias = Any
"""A parse tree of `re`."""


@dataclass(frozen=True)
class Form:
    """How a pattern is written.

    Attributes:
        positions: how positions are written.
        without: the character that no place may stand for.
        ascii_edges: letters outside ASCII are no word bytes, so that the edges of ASCII words can
            be named.
        loose: what the engine has no words for is left out, so that what is written is found in
            every value in which the pattern is, and maybe in more.
    """

    positions: Mapping[Any, str]
    without: str = ""
    ascii_edges: bool = True
    loose: bool = False


TEXT = Form(_POSITIONS)
"""For a single value."""
_STARTS = {op.AT_BEGINNING_STRING: "(?m:^)", op.AT_BEGINNING: "(?m:^)"}
_ENDS = {op.AT_END_STRING: "(?m:$)"}
_LAST = {op.AT_END: "(?m:$)"}
LINE = Form({**_POSITIONS, **_STARTS, **_ENDS, **_LAST}, "\n")
"""For values without line breaks that stand one a line: their ends are those of their lines."""
_EDGES = {at: _POSITIONS[at] for at in (op.AT_BOUNDARY, op.AT_NON_BOUNDARY)}
WOVEN_ENDED = Form({**_STARTS, **_ENDS, **_EDGES}, ascii_edges=False)
"""For values that end with a line break, one a line, their own line breaks and characters outside
ASCII written as other bytes: neither `$` nor the ends of their own lines can be named."""
WOVEN = Form({**WOVEN_ENDED.positions, **_LAST}, ascii_edges=False)
"""The same for values that do not end with a line break."""


class NoTranslation(Exception):
    """The engine may differ from `re` on this pattern."""


def parse(pattern: str) -> Tree:
    """The parse tree of a pattern that compiles; may warn as `re.compile` does.

    Raises:
        NoTranslation: this Python's parser was not tried.
    """
    if not _TRIED:
        raise NoTranslation
    try:
        return re_parser.parse(pattern, re.IGNORECASE)
    except RecursionError:
        raise NoTranslation from None


class Writing:
    """Writes one pattern down in the linear engine's syntax.

    Args:
        tree: the parse tree of a pattern that compiles; None where there is none.
        codes: the alphabet: the byte that stands for each character.

    Attributes:
        sets: for each place, the characters that it accepts.
        places: what stands for one character: its node and flags, as `accepted` takes them.
        edges: it names the edge of a word, where the engine takes only ASCII for words.
        positions: it names a position other than the edge of a word.
        last_break: on a value that ends with a line break it may differ.
        emptiness: on an empty value it may differ.
    """

    def __init__(self, tree: Tree | None, codes: Mapping[str, int]) -> None:
        self._tree = tree
        self._codes = codes
        self._characters = "".join(codes)
        self.sets: set[str] = set()
        self.places: set[tuple[Any, Any, int]] = set()
        self.edges = False
        self.positions = False
        self.last_break = False
        self.emptiness = False

    def written(self, form: Form) -> str:
        """The pattern in this form; what the attributes tell is known afterwards.

        Raises:
            NoTranslation: in this form it may differ.
        """
        if self._tree is None:
            raise NoTranslation
        try:
            return self._sequence(self._tree, int(self._tree.state.flags), form)
        except RecursionError:
            raise NoTranslation from None

    def _sequence(self, nodes: Iterable[tuple[Any, Any]], flags: int, form: Form) -> str:
        return "".join(self._node(kind, value, flags, form) for kind, value in nodes)

    def _node(self, kind: Any, value: Any, flags: int, form: Form) -> str:
        if flags & ~_FLAGS:
            raise NoTranslation
        if kind in (op.LITERAL, op.NOT_LITERAL, op.ANY):
            return self._set((kind, value, flags), form)
        if kind is op.IN:
            return self._set((kind, tuple(value), flags), form)
        if kind is op.AT:
            return self._position(value, flags, form)
        if kind is op.BRANCH:
            return self._either(value[1], flags, form)
        if kind is op.SUBPATTERN:
            _, added, removed, body = value
            if added & re_parser.TYPE_FLAGS:
                # `re` itself errs here: it looks for the first character by the outer flag.
                raise NoTranslation
            return f"(?:{self._sequence(body, (flags | added) & ~removed, form)})"
        if kind in (op.MAX_REPEAT, op.MIN_REPEAT):
            low, high, body = value
            if body.getwidth()[0] == 0 and not form.loose:
                raise NoTranslation
            lazy = "?" if kind is op.MIN_REPEAT else ""
            times = _times(low, high, loose=form.loose)
            return f"(?:{self._sequence(body, flags, form)}){times}{lazy}"
        if form.loose:
            return self._loosened(kind, value, flags, form)
        raise NoTranslation

    def _loosened(self, kind: Any, value: Any, flags: int, form: Form) -> str:
        """What the engine has no words for, in words that are found wherever it is."""
        if kind in (op.ASSERT, op.ASSERT_NOT):
            return ""
        if kind is op.GROUPREF:
            return _ANYTHING
        if kind is op.GROUPREF_EXISTS:
            return self._either([value[1], value[2] or ()], flags, form)
        if kind is op.ATOMIC_GROUP:
            return f"(?:{self._sequence(value, flags, form)})"
        if kind is op.POSSESSIVE_REPEAT:
            return self._node(op.MAX_REPEAT, value, flags, form)
        raise NoTranslation

    def _either(self, bodies: Iterable[Any], flags: int, form: Form) -> str:
        return f"(?:{'|'.join(self._sequence(body, flags, form) for body in bodies)})"

    def _position(self, value: Any, flags: int, form: Form) -> str:
        if flags & re.MULTILINE:
            value = op.AT_MULTILINE.get(value, value)
        edge = value in (op.AT_BOUNDARY, op.AT_NON_BOUNDARY)
        self.edges = self.edges or (edge and not flags & re.ASCII)
        self.positions = self.positions or not edge
        self.last_break = self.last_break or value is op.AT_END
        self.emptiness = self.emptiness or value is op.AT_NON_BOUNDARY
        if value in form.positions and (form.ascii_edges or not (edge and flags & re.ASCII)):
            return form.positions[value]
        if form.loose:
            return ""
        raise NoTranslation

    def _set(self, place: tuple[Any, Any, int], form: Form) -> str:
        """A set in the engine's syntax; every character is written as its byte."""
        taken = accepted(*place, self._characters)
        self.sets.add(taken)
        self.places.add(place)
        codes = {self._codes[each] for each in taken if each not in form.without}
        starts = sorted(code for code in codes if code - 1 not in codes)
        ends = sorted(code for code in codes if code + 1 not in codes)
        ranges = (rf"\x{low:02x}-\x{high:02x}" for low, high in zip(starts, ends, strict=True))
        return f"[{''.join(ranges)}]" if codes else _NOTHING


class Translation(Writing):
    """One pattern in the linear engine's syntax, where that finds just what `re` finds.

    Args:
        tree: the parse tree of a pattern that compiles.
        codes: the alphabet: the byte that stands for each character.

    Attributes:
        text: for a single value.
        line: for values without a line break that stand one a line in one text.

    Raises:
        NoTranslation: it may differ on any value.
    """

    def __init__(self, tree: Tree, codes: Mapping[str, int]) -> None:
        super().__init__(tree, codes)
        self.text = self.written(TEXT)
        self.line = self.written(LINE)


@lru_cache(maxsize=4096)
def accepted(kind: Any, value: Any, flags: int, characters: str) -> str:
    """Which of some characters `re` accepts for a node of its tree that stands for one."""
    return "".join(matcher(kind, value, flags).findall(characters))


def matcher(kind: Any, value: Any, flags: int) -> re.Pattern[str]:
    """What `re` itself makes of a node of its tree that stands for one character."""
    node = (kind, list(value) if kind is op.IN else value)
    alone = re_parser.SubPattern(re_parser.State(), [node])
    compiled: re.Pattern[str] = re_compiler.compile(alone, flags)
    return compiled


def _times(low: int, high: int, *, loose: bool) -> str:
    if loose and low > MOST_REPEATS:
        low = MOST_REPEATS
    if loose and high > MOST_REPEATS:
        high = op.MAXREPEAT
    if high is op.MAXREPEAT or high == int(op.MAXREPEAT):
        return {0: "*", 1: "+"}.get(low) or f"{{{_counted(low)},}}"
    return "?" if (low, high) == (0, 1) else f"{{{low},{_counted(high)}}}"


def _counted(number: int) -> int:
    if number > MOST_REPEATS:
        raise NoTranslation
    return number
