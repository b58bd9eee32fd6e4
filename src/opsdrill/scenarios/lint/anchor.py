"""OD024: an anchor that a prefix defeats: `^systemctl` does not match `sudo systemctl ...`."""

from __future__ import annotations

from collections.abc import Iterator

from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.lint.check import Finding
from opsdrill.scenarios.lint.expression import Character, Choice, Group, Item, Position, Repeat
from opsdrill.scenarios.lint.replacement import Replacement, replaced
from opsdrill.scenarios.lint.skeleton import is_space
from opsdrill.scenarios.lint.sought import COMMANDS, sought
from opsdrill.scenarios.lint.words import COMMAND_START

_STARTS = ("^", r"\A")


class DefeatedAnchor:
    code = "OD024"

    def __call__(self, scenario: Scenario) -> Iterator[Finding]:
        for pattern in sought(scenario):
            expression = pattern.expression
            if pattern.where != COMMANDS or expression is None:
                continue
            anchors = list(_anchors(expression.body))
            if anchors:
                changes = (Replacement(at.start, at.end, COMMAND_START) for at in anchors)
                yield Finding(
                    pattern.location,
                    f"begins with `{anchors[0].kind}`, so a command behind `sudo`, `env X=1` or "
                    "`cd x &&` is not found",
                    severity="note",
                    better=(replaced(pattern.text, changes),),
                )


def _anchors(choice: Choice) -> Iterator[Position]:
    """The anchors right behind which a command must begin."""
    for option in choice.options:
        first = option.items[0] if option.items else None
        if isinstance(first, Group) and first.kind in ("capture", "plain"):
            yield from _anchors(first.body)
        elif isinstance(first, Position) and first.kind in _STARTS:
            rest = [item for item in option.items[1:] if not is_space(item)]
            if rest and _is_command(rest[0]):
                yield first


def _is_command(item: Item) -> bool:
    """Whether a command begins here, and nothing can stand before it."""
    if isinstance(item, Character):
        return item.char.isalpha() or item.char == "/"
    if isinstance(item, Repeat):
        return item.low > 0 and _is_command(item.item)
    if isinstance(item, Group) and item.kind in ("capture", "plain"):
        starts = [option.items[:4] for option in item.body.options]
        words = ["".join(part.char for part in s if isinstance(part, Character)) for s in starts]
        return all(s and _is_command(s[0]) for s in starts) and "sudo" not in words
    return False
