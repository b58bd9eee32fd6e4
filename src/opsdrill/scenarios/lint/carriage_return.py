"""OD032: a `$` at the end, which does not match where lines end with CR and LF.

What people and agents write may come from Windows or through a web form. Commands and paths do
not.
"""

from __future__ import annotations

from collections.abc import Iterator

from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.lint.check import Finding
from opsdrill.scenarios.lint.expression import Choice, Group, Position
from opsdrill.scenarios.lint.replacement import insert, replaced
from opsdrill.scenarios.lint.skeleton import accepts
from opsdrill.scenarios.lint.sought import sought


class EndBeforeCarriageReturn:
    code = "OD032"

    def __call__(self, scenario: Scenario) -> Iterator[Finding]:
        for pattern in sought(scenario):
            if not pattern.in_prose or pattern.expression is None:
                continue
            ends = list(_ends(pattern.expression.body))
            if ends:
                changes = (insert(end.start, r"\r?") for end in ends)
                yield Finding(
                    pattern.location,
                    "ends with `$`, which does not match before the CR of a line that ends with "
                    "CR and LF",
                    severity="note",
                    better=(replaced(pattern.text, changes),),
                )


def _ends(choice: Choice) -> Iterator[Position]:
    """Each `$` that a match must end at, with something before it that takes no CR."""
    for option in choice.options:
        last = option.items[-1] if option.items else None
        if isinstance(last, Group) and last.kind in ("capture", "plain"):
            yield from _ends(last.body)
        elif isinstance(last, Position) and last.kind == "$" and len(option.items) > 1:
            before = option.items[-2]
            if not isinstance(before, Position) and not accepts(before, "\r"):
                yield last
