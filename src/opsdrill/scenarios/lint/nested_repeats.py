"""OD033: repetition inside repetition that can split the same text in very many ways.

Python's own `re` tries all of them. Where the linear engine can take the pattern that costs
nothing; where it cannot, a value of a few dozen characters uses up the time that a rule has.
"""

from __future__ import annotations

from collections.abc import Iterator

from opsdrill.errors import InvalidPattern, Severity
from opsdrill.model.scenario import Scenario
from opsdrill.patterns import compile_pattern
from opsdrill.scenarios.lint.ambiguity import exploding
from opsdrill.scenarios.lint.check import Finding
from opsdrill.scenarios.lint.emptiness import may_be_empty
from opsdrill.scenarios.lint.expression import Expression, Group, Repeat, read
from opsdrill.scenarios.lint.replacement import Replacement, replaced
from opsdrill.scenarios.lint.sought import sought


class NestedRepeats:
    code = "OD033"

    def __call__(self, scenario: Scenario) -> Iterator[Finding]:
        for pattern in sought(scenario):
            if pattern.expression is None:
                continue
            found = exploding(pattern.expression)
            if found is None:
                continue
            part = pattern.text[found.start : found.end]
            severity: Severity = "note" if _is_linear(pattern.text) else "warning"
            better = _better(pattern.expression, found)
            yield Finding(
                pattern.location,
                f"has `{part}`, which can split one text in very many ways, all of which are "
                "tried where it does not match",
                suggestion=None if better else "say what separates the parts",
                severity=severity,
                better=(better,) if better else (),
            )


def _is_linear(text: str) -> bool:
    try:
        return compile_pattern(text).linear is not None
    except InvalidPattern:
        return False


def _better(expression: Expression, repeat: Repeat) -> str | None:
    """The pattern without the inner repetition, where the outer one does the same."""
    inner = repeat.item
    options = inner.body.options if isinstance(inner, Group) else ()
    if len(options) != 1:
        return None
    items = options[0].items
    for at, item in enumerate(items):
        others = [*items[:at], *items[at + 1 :]]
        if not (isinstance(item, Repeat) and item.high is None and item.mode == "greedy"):
            continue
        if item.low > 1 or not all(map(may_be_empty, others)):
            continue
        changes = [Replacement(item.item.end, item.end, "" if item.low else "?")]
        if item.low == 0 and not others:
            changes = [
                Replacement(item.item.end, item.end, ""),
                Replacement(inner.end, repeat.end, "*"),
            ]
        better = replaced(expression.text, changes)
        again = read(better)
        if again is not None and exploding(again) is None:
            return better
    return None
