"""OD023: alternatives that reach further than they look.

`^a|b$` is "starts with a" or "ends with b"; `systemctl (stop|restart) nginx|apache` is the whole
first command or just the word apache.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from collections.abc import Sequence as Row
from dataclasses import dataclass

from opsdrill.errors import Severity
from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.lint.check import Finding
from opsdrill.scenarios.lint.expression import Character, Expression, Item, Position, Sequence
from opsdrill.scenarios.lint.replacement import insert, replaced
from opsdrill.scenarios.lint.skeleton import EDGE, GAP, SPACES, Skeleton, skeleton
from opsdrill.scenarios.lint.sought import COMMANDS, Sought, sought
from opsdrill.scenarios.lint.words import COMMAND_NAMES

_PAIRS = (("^", "$"), (r"\A", r"\Z"), (r"\b", r"\b"))
_PLAIN = re.compile(r"[A-Za-z][\w.@-]+")
_BETWEEN_WORDS = re.compile(f"[ {GAP}{SPACES}]+")


class LooseAlternation:
    code = "OD023"

    def __call__(self, scenario: Scenario) -> Iterator[Finding]:
        for pattern in sought(scenario):
            expression = pattern.expression
            if expression is None or len(expression.options) < 2:
                continue
            found = _anchors(pattern, expression) or _words(
                pattern, expression, _commands_of(scenario)
            )
            if found is not None:
                yield found


def _anchors(pattern: Sought, expression: Expression) -> Finding | None:
    options = [option for option in expression.options if option.items]
    if len(options) < 2:
        return None
    for left, right in _PAIRS:
        first, last = options[0], options[-1]
        opens = _is(first.items[0], left) and len(first.items) > 1
        closes = _is(last.items[-1], right) and len(last.items) > 1
        opens = opens and not any(_is(option.items[0], left) for option in options[1:])
        closes = closes and not any(_is(option.items[-1], right) for option in options[:-1])
        if opens and closes:
            return _anchor_finding(pattern, first.items[0].end, last.items[-1].start, left, right)
        if left != r"\b" and (opens or closes) and _all_begin_words(options):
            begin = first.items[0].end if opens else max(first.start, expression.head)
            end = last.items[-1].start if closes else last.end
            return _anchor_finding(pattern, begin, end, left if opens else "", right * closes)
    return None


def _anchor_finding(pattern: Sought, begin: int, end: int, left: str, right: str) -> Finding:
    both = bool(left and right)
    what = (
        f"`{left}` holds for the first alternative only and `{right}` for the last only"
        if both
        else f"`{left or right}` holds for the {'first' if left else 'last'} alternative only"
    )
    severity: Severity = "warning" if both else "note"
    changes = (insert(begin, "(?:"), insert(end, ")"))
    return Finding(
        pattern.location,
        f"has alternatives that are not in brackets: {what}",
        severity=severity,
        better=(replaced(pattern.text, changes),),
    )


def _is(item: Item, kind: str) -> bool:
    return isinstance(item, Position) and item.kind == kind


def _all_begin_words(options: Row[Sequence]) -> bool:
    """Whether every alternative begins with a plain character, behind its anchor."""
    for option in options:
        items = [item for item in option.items if not isinstance(item, Position)]
        if not items or not isinstance(items[0], Character) or not _opens_word(items[0].char):
            return False
    return True


def _opens_word(char: str) -> bool:
    return char.isalnum() or char in "/._"


@dataclass(frozen=True, slots=True)
class _Words:
    """An alternative by its words: how many, and where its first and its last one stand."""

    count: int
    first: str
    last: str
    first_end: int
    last_start: int


def _commands_of(scenario: Scenario) -> frozenset[str]:
    """Names that are known to be commands: those of the trade and those of the scenario."""
    required = scenario.requires
    own = {name for names in required.by_host.values() for name in names}
    own |= {*required.commands, *(posixpath.basename(file.to) for file in scenario.files)}
    return COMMAND_NAMES | {name.lower() for name in own}


def _words(pattern: Sought, expression: Expression, commands: frozenset[str]) -> Finding | None:
    """A command with arguments beside bare words that look like its first or its last one."""
    if pattern.where != COMMANDS:
        return None
    told = [_split(skeleton(option)) for option in expression.options]
    if any(words is None for words in told):
        return None
    words = [each for each in told if each is not None]
    start, end = max(expression.options[0].start, expression.head), expression.body.end
    first, last = words[0], words[-1]
    # Of two words the last may be a command itself: `sudo reboot|fixit`.
    ends = first.count > 2 or (first.count == 2 and _is_plain(first.last, commands))
    if ends and _bare(words[1:], commands):
        return _words_finding(pattern, first.count, words[1].first, first.last_start, end)
    begins = last.count > 1 and _is_plain(last.first, commands)
    if begins and _bare(words[:-1], commands):
        return _words_finding(pattern, last.count, first.first, start, last.first_end)
    return None


def _bare(others: Row[_Words], commands: frozenset[str]) -> bool:
    return all(words.count == 1 and _is_plain(words.first, commands) for words in others)


def _is_plain(word: str, commands: frozenset[str]) -> bool:
    """Whether it is a word, and surely not the name of a command."""
    if _PLAIN.fullmatch(word) is None or word.lower() in commands:
        return False
    return not word.lower().endswith(("ctl", "cli", "adm", ".sh", ".py"))


def _words_finding(pattern: Sought, count: int, word: str, begin: int, end: int) -> Finding:
    changes = (insert(begin, "(?:"), insert(end, ")"))
    return Finding(
        pattern.location,
        f"has alternatives that are not in brackets, so `{word}` alone is enough, without the "
        "command that stands in the other one",
        severity="warning" if count > 2 else "note",
        better=(replaced(pattern.text, changes),),
    )


def _split(shape: Skeleton) -> _Words | None:
    text = shape.text.strip(EDGE + " ")
    if not text:
        return None
    begin = shape.text.index(text)
    spans = _spans(text)
    if not spans:
        return None
    (_, first_end), (last_start, _) = spans[0], spans[-1]
    return _Words(
        len(spans),
        text[: spans[0][1]][spans[0][0] :],
        text[last_start : spans[-1][1]],
        shape.items[begin + first_end - 1].end,
        shape.items[begin + last_start].start,
    )


def _spans(text: str) -> list[tuple[int, int]]:
    spans, start = [], 0
    for gap in _BETWEEN_WORDS.finditer(text):
        if gap.start() > start:
            spans.append((start, gap.start()))
        start = gap.end()
    return [*spans, (start, len(text))] if start < len(text) else spans
