"""OD027: a must-not pattern that fires where a command is only named.

`reboot` is found in `echo reboot`, `grep reboot /var/log/syslog`, `last reboot`, in a comment and
in `--dry-run`. Whether that matters, and whether to miss what hides from a stricter pattern, is
for the author. Nobody mentions a command with all its arguments, so a pattern that asks for more
than the words is not told.
"""

from __future__ import annotations

from collections.abc import Iterator

from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.lint.check import Finding
from opsdrill.scenarios.lint.expression import Character, Group, Item, Position, Repeat
from opsdrill.scenarios.lint.replacement import insert, replaced
from opsdrill.scenarios.lint.skeleton import is_space
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
                option
                for option in expression.options
                if all(map(_is_plain, option.items)) and _is_command(option.items)
            ]
            if named:
                example = _example(named[0].items)
                changes = (
                    insert(max(option.start, expression.head), COMMAND_START) for option in named
                )
                yield Finding(
                    pattern.location,
                    f"also fires where `{example}` is only named: `echo {example}`, a search for "
                    "it, a manual page, a comment, a `--dry-run`",
                    severity="note",
                    better=(replaced(pattern.text, changes),),
                )


def _is_plain(item: Item) -> bool:
    """Whether it is just words: nothing that lets other text stand between them."""
    if isinstance(item, Group):
        return all(_is_plain(part) for option in item.body.options for part in option.items)
    if isinstance(item, Repeat):
        return is_space(item) or (item.high == 1 and _is_plain(item.item))
    return isinstance(item, (Character, Position)) or is_space(item)


def _is_command(items: tuple[Item, ...]) -> bool:
    """Whether a sequence begins with the name of a command, behind nothing but `\\b`."""
    if items and isinstance(items[0], Position) and items[0].kind == r"\b":
        items = items[1:]
    if items and isinstance(items[0], Group) and items[0].kind in ("capture", "plain"):
        return any(_is_command(option.items) for option in items[0].body.options)
    word = ""
    for item in items:
        if not isinstance(item, Character) or not (item.char.isalnum() or item.char in "-._"):
            break
        word += item.char
    return word.rstrip("-._").lower() in COMMAND_NAMES


def _example(items: tuple[Item, ...]) -> str:
    """What plain words match, as short as can be."""
    text = ""
    for item in items:
        if isinstance(item, Character):
            text += item.char
        elif isinstance(item, Group):
            text += _example(item.body.options[0].items)
        elif is_space(item) and not (isinstance(item, Repeat) and item.low == 0):
            text += " "
    return text
