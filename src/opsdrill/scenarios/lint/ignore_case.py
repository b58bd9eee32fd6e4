"""OD030: `(?i)`, which says nothing, for case never counts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.lint.check import Finding
from opsdrill.scenarios.lint.expression import Expression, Group, Repeat
from opsdrill.scenarios.lint.replacement import Replacement, replaced
from opsdrill.scenarios.lint.sought import sought

_GLOBAL = re.compile(r"(?<!\\)\(\?([aimsux]+)\)")
_SCOPED = re.compile(r"\(\?([aimsux]*)((?:-[imsx]+)?:)")


class RedundantIgnoreCase:
    code = "OD030"

    def __call__(self, scenario: Scenario) -> Iterator[Finding]:
        for pattern in sought(scenario):
            expression = pattern.expression
            changes = tuple(_changes(expression)) if expression else ()
            better = replaced(pattern.text, changes)
            if changes and better.strip():
                yield Finding(
                    pattern.location,
                    "says that case does not matter, which is so in every pattern",
                    severity="note",
                    better=(better,),
                    fix=changes,
                )


def _changes(expression: Expression) -> Iterator[Replacement]:
    if "#" not in expression.text[: expression.head]:  # in a comment it would be no flag
        for flags in _GLOBAL.finditer(expression.text, 0, expression.head):
            if "i" in flags[1]:
                left = flags[1].replace("i", "")
                yield Replacement(*flags.span(), f"(?{left})" if left else "")
    for sequence in expression.sequences():
        for item in sequence.items:
            inner = item.item if isinstance(item, Repeat) else item
            if isinstance(inner, Group) and inner.flags & re.IGNORECASE:
                opening = _SCOPED.match(expression.text, inner.start)
                if opening is not None and "i" in opening[1]:
                    left = opening[1].replace("i", "")
                    yield Replacement(*opening.span(), f"(?{left}{opening[2]}")
