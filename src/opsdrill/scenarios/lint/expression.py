"""A pattern read with the place of every part.

The tree of `re` itself has no places, and it moves and merges what alternatives share. So the
skeleton (groups, alternatives, repetition) is read here, and what each single part means is asked
of `re`'s own parser. A test compares both readings of whole patterns.
"""

from __future__ import annotations

import re
import re._constants as op  # type: ignore[import-not-found]
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from opsdrill.patterns.translation import NoTranslation, parse

LONGEST = 4000
"""Characters of the longest pattern that is read; nobody writes a longer one by hand."""

GroupKind = Literal["capture", "plain", "atomic", "ahead", "not ahead", "behind", "not behind",
                    "condition"]  # fmt: skip
Mode = Literal["greedy", "lazy", "possessive"]


@dataclass(frozen=True, slots=True)
class Part:
    """Something of a pattern that stands at `start` up to `end`, under some flags of `re`."""

    start: int
    end: int
    flags: int


@dataclass(frozen=True, slots=True)
class Character(Part):
    """One character, however it is written: `a`, `\\.`, `[.]`."""

    char: str


@dataclass(frozen=True, slots=True)
class Dot(Part):
    """Any character; without the flag for it, no line break."""


@dataclass(frozen=True, slots=True)
class Set(Part):
    """One of several characters: `[a-z]`, `\\d`. `text` is how it is written."""

    text: str

    def accepted(self, characters: str) -> str:
        """Those of some characters that it accepts."""
        flags = self.flags & (re.IGNORECASE | re.ASCII)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return "".join(re.compile(self.text, flags).findall(characters))


@dataclass(frozen=True, slots=True)
class Position(Part):
    """A place between characters: `kind` is `^`, `$`, `\\A`, `\\Z`, `\\b` or `\\B`."""

    kind: str


@dataclass(frozen=True, slots=True)
class Reference(Part):
    """What an earlier group matched, once more."""


@dataclass(frozen=True, slots=True)
class Group(Part):
    """A part in brackets."""

    kind: GroupKind
    body: Choice


@dataclass(frozen=True, slots=True)
class Repeat(Part):
    """A part some times over; `high` None means without an end."""

    item: Item
    low: int
    high: int | None
    mode: Mode


@dataclass(frozen=True, slots=True)
class Sequence(Part):
    """Parts one after the other."""

    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Choice(Part):
    """Alternatives; often just one."""

    options: tuple[Sequence, ...]


Item: TypeAlias = Character | Dot | Set | Position | Reference | Group | Repeat


@dataclass(frozen=True, slots=True)
class Expression:
    """A whole pattern. `head` is where its flags for all of it end, mostly 0."""

    text: str
    body: Choice
    flags: int
    head: int

    @property
    def options(self) -> tuple[Sequence, ...]:
        return self.body.options

    def sequences(self) -> Iterator[Sequence]:
        """Every sequence of the pattern, also inside of groups, in the order of the text."""
        waiting: list[Sequence | Item] = list(reversed(self.options))
        while waiting:
            part = waiting.pop()
            if isinstance(part, Sequence):
                yield part
                waiting += reversed(part.items)
            elif isinstance(part, Group):
                waiting += reversed(part.body.options)
            elif isinstance(part, Repeat):
                waiting.append(part.item)


@lru_cache(maxsize=4096)
def read(text: str) -> Expression | None:
    """A pattern that compiles, read; None where this reader does not understand it."""
    flags = int(re.IGNORECASE)
    if len(text) > LONGEST:
        return None
    try:
        for _ in range(2):  # flags for the whole pattern become known while it is read
            reader = _Reader(text, flags)
            body = reader.choice(flags)
            if reader.found == flags:
                whole = body.end == len(text)
                return Expression(text, body, flags, reader.head) if whole else None
            flags = reader.found
    except (_NotUnderstood, NoTranslation, RecursionError):
        pass
    return None


class _NotUnderstood(Exception):
    pass


_ESCAPE = re.compile(
    r"\\(?:x..|u.{4}|U.{8}|N\{[^}]*\}|0[0-7]{0,2}|[0-3][0-7]{2}|[1-9][0-9]?|.)", re.DOTALL
)
_SET = re.compile(r"\[\^?(?:\\.|.)(?:\\.|[^\\\]])*\]", re.DOTALL)
_TIMES = re.compile(r"([*+?])|\{([0-9]*)(?:(,)([0-9]*))?\}")
_INERT = re.compile(r"\(\?#[^)]*\)")
_FLAGS = re.compile(r"\(\?([aimsuxL]*)(?:-([imsx]+))?([:)])")
_SPACE = re.compile(r"(?:[ \t\n\r\v\f]|#[^\n]*(?:\n|\Z))+")
_OPENINGS: tuple[tuple[str, GroupKind], ...] = (
    ("(?:", "plain"), ("(?>", "atomic"), ("(?=", "ahead"), ("(?!", "not ahead"),
    ("(?<=", "behind"), ("(?<!", "not behind"),
)  # fmt: skip
_NAMED = re.compile(r"\(\?P<\w+>")
_NAMED_AGAIN = re.compile(r"\(\?P=\w+\)")
_CONDITION = re.compile(r"\(\?\(\w+\)")
_LETTERS = {"i": re.I, "m": re.M, "s": re.S, "x": re.X, "a": re.A, "u": re.U}
_POSITIONS = {"^", "$", r"\A", r"\Z", r"\b", r"\B"}


class _Reader:
    """Walks over a pattern once; `at` is where it is."""

    def __init__(self, text: str, flags: int) -> None:
        self.text = text
        self.at = 0
        self.found = flags
        self.head = 0

    def choice(self, flags: int) -> Choice:
        start = self.at
        options = [self._sequence(flags)]
        while self.text.startswith("|", self.at):
            self.at += 1
            options.append(self._sequence(flags))
        return Choice(start, self.at, flags, tuple(options))

    def _sequence(self, flags: int) -> Sequence:
        start, items = self.at, list[Item]()
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            if self._inert(flags):
                continue
            times = _TIMES.match(self.text, self.at)
            if times is not None and times.group() != "{}" and items:
                items[-1] = self._repeat(items[-1], times)
            else:
                items.append(self._item(flags))
        return Sequence(start, self.at, flags, tuple(items))

    def _inert(self, flags: int) -> bool:
        """Whether what stands here matches nothing: a comment, flags, space where it is free."""
        space = _SPACE.match(self.text, self.at) if flags & re.X else None
        found = space or _INERT.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
            return True
        switch = _FLAGS.match(self.text, self.at)
        if switch is None or switch[3] != ")":
            return False
        self.found |= _added(switch[1])
        self.at = self.head = switch.end()
        return True

    def _repeat(self, item: Item, times: re.Match[str]) -> Repeat:
        low, high = _bounds(times)
        self.at = times.end()
        mode: Mode = "greedy"
        if self.text.startswith(("?", "+"), self.at):
            mode = "lazy" if self.text[self.at] == "?" else "possessive"
            self.at += 1
        return Repeat(item.start, self.at, item.flags, item, low, high, mode)

    def _item(self, flags: int) -> Item:
        start, char = self.at, self.text[self.at]
        if char == "(":
            return self._group(flags)
        if char == ".":
            self.at += 1
            return Dot(start, self.at, flags)
        if char in "\\[":
            found = (_ESCAPE if char == "\\" else _SET).match(self.text, start)
            if found is None:
                raise _NotUnderstood
            self.at = found.end()
            return _meant(start, found.group(), flags)
        self.at += 1
        if char in _POSITIONS:
            return Position(start, self.at, flags, char)
        return Character(start, self.at, flags, char)

    def _group(self, flags: int) -> Item:
        start = self.at
        again = _NAMED_AGAIN.match(self.text, start)
        if again is not None:
            self.at = again.end()
            return Reference(start, self.at, flags)
        kind, self.at, inner = self._opened(flags)
        body = self.choice(inner)
        if not self.text.startswith(")", self.at):
            raise _NotUnderstood
        self.at += 1
        return Group(start, self.at, flags, kind, body)

    def _opened(self, flags: int) -> tuple[GroupKind, int, int]:
        """What kind of group opens here, where its body begins, and under which flags."""
        if not self.text.startswith("(?", self.at):
            return "capture", self.at + 1, flags
        for opening, kind in _OPENINGS:
            if self.text.startswith(opening, self.at):
                return kind, self.at + len(opening), flags
        if (named := _NAMED.match(self.text, self.at)) is not None:
            return "capture", named.end(), flags
        if (condition := _CONDITION.match(self.text, self.at)) is not None:
            return "condition", condition.end(), flags
        switch = _FLAGS.match(self.text, self.at)
        if switch is None or switch[3] != ":":
            raise _NotUnderstood
        inner = (flags | _added(switch[1])) & ~_added(switch[2] or "")
        return "plain", switch.end(), inner


def _added(letters: str) -> int:
    flags = 0
    for letter in letters:
        flags |= int(_LETTERS[letter])
    return flags


def _bounds(times: re.Match[str]) -> tuple[int, int | None]:
    if times[1]:
        return (1 if times[1] == "+" else 0), (1 if times[1] == "?" else None)
    low = int(times[2] or 0)
    if times[3] is None:
        return low, low
    return low, int(times[4]) if times[4] else None


def _meant(start: int, text: str, flags: int) -> Item:
    """An escape or a set, as `re` itself understands it."""
    end = start + len(text)
    if text in _POSITIONS:
        return Position(start, end, flags, text)
    if text[0] == "\\" and text[1] in "123456789" and len(text) < 4:
        return Reference(start, end, flags)
    kind, value = _node(text)
    if kind is op.LITERAL:
        return Character(start, end, flags, chr(value))
    return Set(start, end, flags, text)


@lru_cache(maxsize=1024)
def _node(text: str) -> tuple[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nodes = list(parse(text))
    if len(nodes) != 1:
        raise _NotUnderstood
    kind, value = nodes[0]
    return kind, value
