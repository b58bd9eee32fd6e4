"""OD031: a class of ASCII characters only, in a pattern that is meant for other ones too.

Under `(?a)` neither `\\w` nor `\\b` knows `ü`; `[a-z]` never does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.lint.check import Finding
from opsdrill.scenarios.lint.expression import (
    Character,
    Expression,
    Item,
    Position,
    Repeat,
    Sequence,
    Set,
)
from opsdrill.scenarios.lint.replacement import Replacement, replaced
from opsdrill.scenarios.lint.skeleton import accepted
from opsdrill.scenarios.lint.sought import Sought, sought

_FLAGS = re.compile(r"\(\?([aimsux]*a[aimsux]*)((?:-[imsx]+)?[:)])")
_CLASS = re.compile(r"\\[wWdD]")
_ASCII = "abcdefghijklmnopqrstuvwxyz"
_WIDER = {"": r"[^\W\d_]", "0": r"[^\W_]", "_": r"[^\W\d]", "0_": r"\w"}


class AsciiWords:
    code = "OD031"

    def __call__(self, scenario: Scenario) -> Iterator[Finding]:
        for pattern in sought(scenario):
            expression = pattern.expression
            if expression is None or not _has_foreign(expression):
                continue
            found = _under_flag(pattern, expression) or _beside_letters(pattern, expression)
            if found is not None:
                yield found


def _has_foreign(expression: Expression) -> bool:
    return any(
        _is_foreign(item)
        or (isinstance(item, Set) and any(c.isalnum() and not c.isascii() for c in item.text))
        for sequence in expression.sequences()
        for item in map(_inner, sequence.items)
    )


def _under_flag(pattern: Sought, expression: Expression) -> Finding | None:
    narrow = [
        item
        for sequence in expression.sequences()
        for item in map(_inner, sequence.items)
        if item.flags & re.ASCII
        and (
            (isinstance(item, Set) and _CLASS.search(item.text))
            or (isinstance(item, Position) and item.kind in (r"\b", r"\B"))
        )
    ]
    if not narrow:
        return None
    part = pattern.text[narrow[0].start : narrow[0].end]
    better = _FLAGS.sub(_without_ascii, pattern.text)
    return Finding(
        pattern.location,
        f"has letters outside ASCII, which `{part}` does not know under the flag `a`",
        better=(better,),
    )


def _without_ascii(found: re.Match[str]) -> str:
    left = found[1].replace("a", "")
    return "" if not left and found[2] == ")" else f"(?{left}{found[2]}"


def _beside_letters(pattern: Sought, expression: Expression) -> Finding | None:
    changes = [change for s in expression.sequences() for change in _narrow_sets(s)]
    if not changes:
        return None
    part = pattern.text[changes[0].start : changes[0].end]
    return Finding(
        pattern.location,
        f"has `{part}` beside a letter outside ASCII, and knows only ASCII letters there",
        severity="note",
        better=(replaced(pattern.text, changes),),
    )


def _narrow_sets(sequence: Sequence) -> Iterator[Replacement]:
    items = [_inner(item) for item in sequence.items]
    for at, item in enumerate(items):
        beside = [*items[max(at - 1, 0) : at], *items[at + 1 : at + 2]]
        if isinstance(item, Set) and any(map(_is_foreign, beside)):
            taken = accepted(item, _ASCII + "0_-. ü")
            rest = taken.replace(_ASCII, "", 1)
            if taken.startswith(_ASCII) and rest in _WIDER:
                yield Replacement(item.start, item.end, _WIDER[rest])


def _inner(item: Item) -> Item:
    return item.item if isinstance(item, Repeat) else item


def _is_foreign(item: Item) -> bool:
    return isinstance(item, Character) and item.char.isalpha() and not item.char.isascii()
