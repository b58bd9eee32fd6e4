"""OD026: `.` that is to reach over the lines of a here-document, where it stops at the first."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.lint.check import Finding
from opsdrill.scenarios.lint.expression import Dot, Repeat, Sequence
from opsdrill.scenarios.lint.replacement import Replacement, replaced
from opsdrill.scenarios.lint.skeleton import EDGE, GAP, SPACES, skeleton
from opsdrill.scenarios.lint.sought import COMMANDS, sought

_OPENS = re.compile(r"(?<!<)<<(?!<)")
# What follows on the line of `<<` itself: where the text goes, or the word that ends it.
_SAME_LINE = re.compile(rf"[ {SPACES}{EDGE}]*(?:[>|&;\\'\"-]|[A-Z_]{{2}}|END|$)")


class DotInHereDocument:
    code = "OD026"

    def __call__(self, scenario: Scenario) -> Iterator[Finding]:
        for pattern in sought(scenario):
            if pattern.where != COMMANDS or pattern.expression is None:
                continue
            dots = [dot for s in pattern.expression.sequences() for dot in _dots(s)]
            if dots:
                changes = (Replacement(dot.start, dot.end, r"[\s\S]") for dot in dots)
                yield Finding(
                    pattern.location,
                    "looks for something in a here-document, but `.` stops at the end of the "
                    "line of `<<`",
                    better=(replaced(pattern.text, changes),),
                )


def _dots(sequence: Sequence) -> Iterator[Dot]:
    """The dots behind `<<` that must get to another line."""
    shape = skeleton(sequence)
    opens = _OPENS.search(shape.text)
    if opens is None:
        return
    for at in range(opens.end(), len(shape.text)):
        item = shape.items[at]
        if shape.text[at] != GAP or not isinstance(item, Repeat) or not isinstance(item.item, Dot):
            continue
        if not item.flags & re.DOTALL and not _SAME_LINE.match(shape.text, at + 1):
            yield item.item
