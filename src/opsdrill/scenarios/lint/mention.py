"""OD027: a must-not pattern that fires where a command is only named.

`reboot` is found in `echo reboot`, `grep reboot /var/log/syslog`, `last reboot`, in a comment and
in `--dry-run`. Whether that matters, and whether to miss what hides from a stricter pattern, is
for the author.
"""

from __future__ import annotations

from collections.abc import Iterator

from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.lint.check import Finding
from opsdrill.scenarios.lint.expression import Character, Group, Item, Position, Sequence
from opsdrill.scenarios.lint.replacement import insert, replaced
from opsdrill.scenarios.lint.sought import COMMANDS, sought
from opsdrill.scenarios.lint.words import COMMAND_NAMES, COMMAND_START


class FiresOnMention:
    code = "OD027"

    def __call__(self, scenario: Scenario) -> Iterator[Finding]:
        for pattern in sought(scenario):
            expression = pattern.expression
            if not pattern.negate or pattern.where != COMMANDS or expression is None:
                continue
            named = [
                (option, word)
                for option in expression.options
                if (word := _command(option.items)) is not None
            ]
            if named:
                word = named[0][1]
                changes = (
                    insert(max(option.start, expression.head), COMMAND_START) for option, _ in named
                )
                yield Finding(
                    pattern.location,
                    f"also fires where `{word}` is only named: `echo {word}`, "
                    f"`grep {word} FILE`, `man {word}`, a comment, a `--dry-run`",
                    severity="note",
                    better=(replaced(pattern.text, changes),),
                )


def _command(items: tuple[Item, ...]) -> str | None:
    """The name of the command that a sequence begins with, behind nothing but `\\b`."""
    if items and isinstance(items[0], Position) and items[0].kind == r"\b":
        items = items[1:]
    if items and isinstance(items[0], Group) and items[0].kind in ("capture", "plain"):
        found = (_command(option.items) for option in items[0].body.options)
        return next((word for word in found if word is not None), None)
    word = _leading(items)
    return word if word.lower() in COMMAND_NAMES else None


def _leading(items: tuple[Item, ...] | Sequence) -> str:
    word = ""
    for item in items if isinstance(items, tuple) else items.items:
        if not isinstance(item, Character) or not (item.char.isalnum() or item.char in "-._"):
            break
        word += item.char
    return word.rstrip("-._")
