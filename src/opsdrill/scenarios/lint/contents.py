"""OD034: a pattern on `write_file` or `update_file` that expects what was written.

The values of both are paths, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator

from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.lint.check import Finding
from opsdrill.scenarios.lint.expression import (
    Character,
    Choice,
    Expression,
    Group,
    Item,
    Repeat,
    Set,
)
from opsdrill.scenarios.lint.replacement import Replacement, replaced
from opsdrill.scenarios.lint.skeleton import is_space
from opsdrill.scenarios.lint.sought import PATHS, sought

_NEVER_IN_PATHS = frozenset("\n\r\t\"'=<>;|&{}*?")


class ContentsOfFile:
    code = "OD034"

    def __call__(self, scenario: Scenario) -> Iterator[Finding]:
        for pattern in sought(scenario):
            expression = pattern.expression
            if pattern.where not in PATHS or expression is None:
                continue
            what = _required(expression.body)
            if what is not None:
                better = replaced(pattern.text, _in_json(expression))
                yield Finding(
                    pattern.location,
                    f"must find {what}, but the values of `{pattern.where}` are paths, not what "
                    "was written",
                    suggestion="ask the host (`host_state` with `grep -q`), or use "
                    f"`where: tool_calls` with {better}",
                    better=(better,),
                )


def _required(choice: Choice) -> str | None:
    """What every alternative asks for that no path has; None where one may do without."""
    found: str | None = None
    for option in choice.options:
        told = next((what for item in option.items if (what := _foreign(item))), None)
        if told is None:
            return None
        found = found or told
    return found


def _foreign(item: Item) -> str | None:
    if isinstance(item, Repeat):
        return _foreign(item.item) if item.low else None
    if isinstance(item, Group) and item.kind in ("capture", "plain", "atomic"):
        return _required(item.body)
    if isinstance(item, (Character, Set)) and is_space(item):
        return "space"
    if isinstance(item, Character) and item.char in _NEVER_IN_PATHS:
        return f"`{item.char}`" if item.char.isprintable() else "a line break"
    return None


def _in_json(expression: Expression) -> Iterator[Replacement]:
    """The changes for values that are JSON, in which quotes and line breaks are escaped."""
    written = {'"': r"\\?" + '"', "\n": r"\\n", "\t": r"\\t"}
    for sequence in expression.sequences():
        for item in sequence.items:
            if isinstance(item, Character) and item.char in written:
                yield Replacement(item.start, item.end, written[item.char])
