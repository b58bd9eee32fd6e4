"""OD020: a control character in a pattern, where a backslash was lost on the way.

In JSON and in double quotes of YAML `\\b` is a backspace, so `"\\breboot\\b"` looks for backspaces.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.lint.check import Finding
from opsdrill.scenarios.lint.replacement import Replacement, replaced
from opsdrill.scenarios.lint.sought import Sought, sought

BACKSPACE = "\b"
# Tab and line breaks may be meant as they are, and ESC begins the colours of a terminal.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\u2028\u2029]")
_LETTERS = {"\x07": "a", "\x0b": "v", "\x0c": "f"}


class LostBackslash:
    code = "OD020"

    def __call__(self, scenario: Scenario) -> Iterator[Finding]:
        for pattern in sought(scenario):
            if BACKSPACE in pattern.text:
                yield _backspace(pattern)
            elif (found := _CONTROL.search(pattern.text)) is not None:
                yield _control(pattern, found.group())


def _backspace(pattern: Sought) -> Finding:
    changes = tuple(
        Replacement(at, at + 1, r"\b")
        for at, char in enumerate(pattern.text)
        if char == BACKSPACE and not _escaped(pattern.text, at)
    )
    whole = len(changes) == pattern.text.count(BACKSPACE)
    return Finding(
        pattern.location,
        r"holds a backspace (U+0008), which no value has: `\b` lost its backslash in the quotes; "
        r"write `\\b` there, or put the pattern in single quotes in YAML",
        severity="error",
        better=(replaced(pattern.text, changes),) if whole else (),
        fix=changes if whole else (),
    )


def _control(pattern: Sought, char: str) -> Finding:
    letter = _LETTERS.get(char)
    name = unicodedata.name(char, "a control character").lower()
    return Finding(
        pattern.location,
        f"holds U+{ord(char):04X} ({name}), which is hardly ever in a value: a backslash was lost "
        "in the quotes",
        better=(pattern.text.replace(char, rf"\\{letter}"),) if letter else (),
        suggestion=None if letter else f"if it is meant, write \\x{ord(char):02x}",
    )


def _escaped(text: str, at: int) -> bool:
    before = text[:at]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1
