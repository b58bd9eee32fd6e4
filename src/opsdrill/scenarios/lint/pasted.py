"""OD035: smart quotes, special spaces and dashes that a word processor or a web page put in.

They look like what is typed in a shell and match nothing of it. In what people and agents say
they are ordinary characters, so there it depends.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from opsdrill.errors import Severity
from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.lint.check import Finding
from opsdrill.scenarios.lint.expression import Character
from opsdrill.scenarios.lint.replacement import Replacement, replaced
from opsdrill.scenarios.lint.sought import Sought, sought

_QUOTES = {**dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
           **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"')}  # fmt: skip
_SPACES = dict.fromkeys("\u00a0\u2007\u2009\u200a\u202f\u2002\u2003", " ")
_NOTHING = dict.fromkeys("\u200b\u2060\ufeff\u00ad", "")
_DASHES = dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-{1,2}")
_TYPED = {**_QUOTES, **_SPACES, **_NOTHING}
_ALL = {**_TYPED, **_DASHES}


class PastedCharacters:
    code = "OD035"

    def __call__(self, scenario: Scenario) -> Iterator[Finding]:
        for pattern in sought(scenario):
            found = list(_pasted(pattern))
            if found:
                yield _finding(pattern, found)


def _pasted(pattern: Sought) -> Iterator[Character]:
    """The pasted characters; not in a set, where they are named on purpose, nor as escapes."""
    for sequence in pattern.expression.sequences() if pattern.expression else ():
        for item in sequence.items:
            inner = item if isinstance(item, Character) else getattr(item, "item", None)
            if isinstance(inner, Character) and inner.char in _ALL and _is_raw(pattern, inner):
                yield inner


def _is_raw(pattern: Sought, item: Character) -> bool:
    return pattern.text[item.start : item.end] == item.char


def _finding(pattern: Sought, found: list[Character]) -> Finding:
    first = found[0].char
    name = unicodedata.name(first, "unnamed").lower()
    if pattern.in_prose:
        better = replaced(pattern.text, (_either(item) for item in found))
        severity: Severity = "note"
    else:
        changes = [_typed(item) for item in found]
        better, severity = replaced(pattern.text, changes), "warning"
    sure = severity == "warning" and all(item.char in _TYPED for item in found)
    return Finding(
        pattern.location,
        f"holds U+{ord(first):04X} ({name}), which looks like what one types and is not",
        severity=severity,
        better=(better,),
        fix=tuple(map(_typed, found)) if sure else (),
    )


def _typed(item: Character) -> Replacement:
    text = _ALL[item.char]
    return Replacement(item.start, item.end, text)


def _either(item: Character) -> Replacement:
    """As written or as typed: what is said may have both."""
    if item.char in _NOTHING:
        return Replacement(item.start, item.end, f"{item.char}?")
    typed = {**_TYPED, **dict.fromkeys(_DASHES, "-")}[item.char]
    inside = r"\s" if typed == " " else f"{typed}{item.char}"
    if typed == "-":
        inside = f"{item.char}-"
    return Replacement(item.start, item.end, f"[{inside}]")
