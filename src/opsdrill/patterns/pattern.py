"""The dialect: what a pattern may be, and what is refused with the place of the fault."""

from __future__ import annotations

import re
import threading
import warnings
from functools import cached_property, lru_cache

from opsdrill.errors import InvalidPattern
from opsdrill.patterns.linear import Linear
from opsdrill.patterns.translation import NoTranslation, Tree, parse
from opsdrill.patterns.weight import set_weight

LONGEST = 20_000
"""Code points of the longest pattern; Python's parser takes quadratic time in some longer ones."""

_KNOWN_ESCAPES = frozenset("AbBdDsSwWZafnrtvxuUN")  # the letters that Python 3.11 knows
_NO_ESCAPE = r"\y"
MOST_IN_SETS = 2_000_000
"""Characters in the ranges of all sets; so many still compile within a second."""

_quiet = threading.Lock()


class Pattern:
    """A pattern that is known to compile. Made by `compile_pattern`; equal when the text is."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def tree(self) -> Tree | None:
        """The parse tree that `re` makes of it; None where this Python's parser was not tried."""
        with _quiet, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return parse(self.text)
            except NoTranslation:
                return None

    @cached_property
    def linear(self) -> Linear | None:
        """The same pattern for the linear-time engine; None where it may differ from `re`."""
        with _quiet, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return Linear(self.text)
            except NoTranslation:
                return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"


def compile_pattern(text: str) -> Pattern:
    """The pattern that `text` writes down, in the dialect of Python 3.11.

    Raises:
        InvalidPattern: it is empty, `re.compile` refuses it, it uses syntax that came after
            Python 3.11, or it would take long to compile; with the position of the fault in
            code points from 0.
    """
    if not text:
        raise InvalidPattern("an empty pattern matches every value; write what to look for", None)
    if len(text) > LONGEST:
        raise InvalidPattern(f"a pattern may have at most {LONGEST} characters", LONGEST)
    return _compiled(text)


@lru_cache(maxsize=64)  # many runs are graded by the same few patterns
def _compiled(text: str) -> Pattern:
    _compile(text)
    refuse_newer(text)
    return Pattern(text)


def _compile(text: str) -> None:
    """Let Python compile it, without its warnings: what only warns is part of the dialect."""
    try:
        with _quiet, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            weight = set_weight(text)
            if weight <= MOST_IN_SETS:
                re.compile(text, re.IGNORECASE)
    except re.error as error:
        raise InvalidPattern(error.msg, error.pos) from None
    except RecursionError:
        raise InvalidPattern("its groups are nested too deeply", None) from None
    except (ValueError, OverflowError) as error:
        raise InvalidPattern(str(error), None) from None
    if weight > MOST_IN_SETS:
        raise InvalidPattern(
            f"its sets name {weight} characters, more than {MOST_IN_SETS}; use a class like \\w",
            None,
        )


def refuse_newer(text: str) -> None:
    """Refuse escapes that a later Python understands and 3.11 does not, such as `\\z`.

    A backslash in a comment is no escape. So all in doubt are replaced by an escape that no
    Python knows: where that is refused first, one stood.
    """
    doubtful = re.sub(r"\\(.)", _unknown, text, flags=re.DOTALL)
    if doubtful == text:
        return
    try:
        _compile(doubtful)
    except InvalidPattern as error:
        at = error.position or 0
        raise InvalidPattern(f"bad escape {text[at : at + 2]}", at) from None


def _unknown(found: re.Match[str]) -> str:
    letter = found[1]
    known = not (letter.isascii() and letter.isalpha()) or letter in _KNOWN_ESCAPES
    return found[0] if known else _NO_ESCAPE
