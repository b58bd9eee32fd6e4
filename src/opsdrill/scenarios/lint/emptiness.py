"""What of a pattern matches the empty text, wherever it is tried."""

from __future__ import annotations

from opsdrill.scenarios.lint.expression import Expression, Group, Item, Position, Repeat, Sequence


def may_be_empty(item: Item) -> bool:
    """Whether a part surely matches the empty text at any place; a position is not sure to."""
    if isinstance(item, Repeat):
        return item.low == 0 or may_be_empty(item.item)
    if isinstance(item, Group) and item.kind in ("capture", "plain", "atomic"):
        return any(all(map(may_be_empty, option.items)) for option in item.body.options)
    return False


def matches_everything(expression: Expression) -> bool:
    """Whether a pattern surely finds something, if only an empty place, in every value."""
    return any(_everywhere(option) for option in expression.options)


def _everywhere(option: Sequence) -> bool:
    items = list(option.items)
    starts = ends = 0
    while items and isinstance(items[0], Position) and items[0].kind in ("^", r"\A"):
        starts += 1
        del items[0]
    while items and isinstance(items[-1], Position) and items[-1].kind in ("$", r"\Z"):
        ends += 1
        del items[-1]
    return not (starts and ends) and all(map(may_be_empty, items))
