"""A document as it was read: its data, and where in the file every part of it stands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NoReturn

from opsdrill.errors import InvalidInput, Problem

DEPTH_LIMIT = 64
"""How deep lists and objects may be nested in a file that people write."""

NODE_LIMIT = 50_000
"""How many values a file that people write may hold; reading one takes some 20 microseconds."""

SYNTAX = "OD001"
"""The code of everything that cannot be read at all."""

Location = tuple[str | int, ...]

_LONE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file; both count from 1, columns in characters."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Places:
    """Where every value, and every key of an object, starts.

    `cut` are the texts without quotes that a comment follows on the same line. `spans` says of
    each text, from its first quote to its last, where it begins and ends in the file, in
    characters from 0 behind a byte order mark.
    """

    values: dict[Location, Place] = field(default_factory=dict)
    keys: dict[Location, Place] = field(default_factory=dict)
    cut: set[Location] = field(default_factory=set)
    spans: dict[Location, tuple[int, int]] = field(default_factory=dict)


class Document:
    """What a file says.

    Args:
        data: texts, numbers, true, false, null, lists and dicts with text keys.
        file: the name shown in problems; None for what came from elsewhere.
        places: finds the places; called only when something is wrong.
    """

    def __init__(
        self, data: object, file: str | None = None, places: Callable[[], Places] = Places
    ) -> None:
        self.data = data
        self.file = file
        self._find = places

    @cached_property
    def _places(self) -> Places:
        return self._find()

    def place(self, location: Location) -> Place | None:
        """Where the value stands; for one that is not there, what should hold it."""
        for end in range(len(location), -1, -1):
            if (found := self._places.values.get(location[:end])) is not None:
                return found
        return None

    def key_place(self, location: Location) -> Place | None:
        """Where the key of the value stands, else as `place`."""
        return self._places.keys.get(location) or self.place(location)

    def span(self, location: Location) -> tuple[int, int] | None:
        """Where a text of the data begins and ends in the file, its quotes included."""
        return self._places.spans.get(location)

    def cut_by_comment(self) -> Iterator[tuple[Location, str]]:
        """The texts without quotes that end where a comment begins, with what is left of them."""
        for location in sorted(self._places.cut, key=str):
            value: object = self.data
            for part in location:
                value = value[part] if isinstance(value, (dict, list)) else None  # type: ignore[index]
            if isinstance(value, str):
                yield location, value

    def at(self, problem: Problem, place: Place | None) -> Problem:
        """The problem with its place in this file."""
        if place is None:
            return problem.at(self.file, None, None)
        return problem.at(self.file, place.line, place.column)


def unreadable(message: str, file: str | None, place: Place | None) -> NoReturn:
    """Stop at something that cannot be read at all."""
    problem = Problem("", message, code=SYNTAX)
    if place is not None:
        problem = problem.at(file, place.line, place.column)
    else:
        problem = problem.at(file, None, None)
    raise InvalidInput("cannot be read", [problem])


def decoded(content: bytes, file: str | None) -> str:
    """UTF-8 with or without a byte order mark.

    Raises:
        InvalidInput: other bytes; names the first wrong one.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8", "replace")
        wrong = content[error.start]
        unreadable(
            f"is not UTF-8: byte 0x{wrong:02x} cannot stand here; save the file as UTF-8",
            file,
            place_at(before, len(before)),
        )


def place_at(text: str, offset: int) -> Place:
    """The place of the character number `offset` (from 0)."""
    line = text.count("\n", 0, offset) + 1
    return Place(line, offset - (text.rfind("\n", 0, offset) + 1) + 1)


def joined_surrogates(text: str) -> str | None:
    r"""The text with `\ud83d\ude00` pairs joined; None when half a pair is left over."""
    if _LONE.search(text) is None:
        return text
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return None if whole.count("\ufffd") > text.count("\ufffd") else whole


def without_lone_surrogates(value: object) -> object:
    """The data with every half pair replaced by U+FFFD, in keys too."""
    if isinstance(value, str):
        if _LONE.search(value) is None:
            return value
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [without_lone_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {
            without_lone_surrogates(key): without_lone_surrogates(item)
            for key, item in value.items()
        }
    return value
