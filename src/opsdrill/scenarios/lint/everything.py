"""OD029: a pattern that matches every value: `.*`, an empty alternative, all of it optional."""

from __future__ import annotations

from collections.abc import Iterator

from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.lint.check import Finding
from opsdrill.scenarios.lint.emptiness import matches_everything
from opsdrill.scenarios.lint.expression import (
    Character,
    Choice,
    Dot,
    Expression,
    Group,
    Item,
    Position,
    Repeat,
    Set,
    read,
)
from opsdrill.scenarios.lint.replacement import Replacement, replaced
from opsdrill.scenarios.lint.skeleton import accepts
from opsdrill.scenarios.lint.sought import Sought, sought


class MatchesEverything:
    code = "OD029"

    def __call__(self, scenario: Scenario) -> Iterator[Finding]:
        for pattern in sought(scenario):
            expression = pattern.expression
            if expression is None or not matches_everything(expression):
                continue
            outcome = "always fails" if pattern.negate else "always passes"
            effect = f"so the rule {outcome} once there is a value"
            if pattern.location[0] == "replies":
                effect = "so the reply always comes"
            yield _finding(pattern, expression, effect)


def _finding(pattern: Sought, expression: Expression, effect: str) -> Finding:
    items = [item for s in expression.options for item in s.items if not isinstance(item, Position)]
    if len(expression.options) == 1 and len(items) == 1 and _is_anything(items[0]):
        message = f"matches every value, {effect}; where any value will do, `\\S` says so"
        better = pattern.text[: expression.head] + r"\S"
        return Finding(pattern.location, message, severity="warning", better=(better,))
    sound = _without_empty(pattern.text, expression)
    return Finding(
        pattern.location,
        f"matches every value, since it also matches the empty text, {effect}",
        suggestion=None if sound else "say what must be there",
        severity="error",
        better=(sound,) if sound else (),
    )


def _is_anything(item: Item) -> bool:
    if not isinstance(item, Repeat) or item.high is not None:
        return False
    inner = item.item
    return isinstance(inner, Dot) or (
        isinstance(inner, Set) and accepts(inner, "a") and accepts(inner, " ")
    )


def _without_empty(text: str, expression: Expression) -> str | None:
    """The pattern without its empty alternatives, or with the one optional part required."""
    empty = [change for choice in _choices(expression) for change in _empty_options(choice)]
    better = replaced(text, empty)
    if not empty:
        items = expression.options[0].items
        if len(expression.options) > 1 or len(items) != 1 or not isinstance(items[0], Repeat):
            return None
        repeat = items[0]
        inner = text[repeat.item.start : repeat.item.end]
        better = text[: repeat.start] + inner + ("" if repeat.high == 1 else "+")
        better += text[repeat.end :]
    again = read(better)
    sound = again is not None and _names_something(again) and not matches_everything(again)
    return better if sound else None


def _choices(expression: Expression) -> Iterator[Choice]:
    yield expression.body
    for sequence in expression.sequences():
        for item in sequence.items:
            inner = item.item if isinstance(item, Repeat) else item
            if isinstance(inner, Group):
                yield inner.body


def _empty_options(choice: Choice) -> Iterator[Replacement]:
    if len(choice.options) < 2 or all(option.start == option.end for option in choice.options):
        return
    for index, option in enumerate(choice.options):
        if option.start == option.end:
            first = index == 0
            yield Replacement(option.start - (not first), option.end + first, "")


def _names_something(expression: Expression) -> bool:
    return any(
        isinstance(item, (Character, Set)) for s in expression.sequences() for item in s.items
    ) or any(isinstance(item, Repeat) for s in expression.sequences() for item in s.items)
