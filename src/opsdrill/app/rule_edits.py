"""Changes of single rules of a scenario; what they make is checked like any other scenario."""

from __future__ import annotations

from opsdrill.app.library import Change
from opsdrill.errors import NotThere


def added(rule: object, at: int | None) -> Change:
    """Put a rule behind the last, or before the one at a place."""

    def change(data: dict[str, object]) -> object:
        rules = _rules(data)
        if at is not None and at > len(rules):
            raise NotThere("rule", str(at), hint=f"the scenario has {len(rules)} rules")
        place = len(rules) if at is None else at
        return {**data, "validation": [*rules[:place], rule, *rules[place:]]}

    return change


def put(rule: object, index: int) -> Change:
    """Put a rule in the place of another."""

    def change(data: dict[str, object]) -> object:
        rules = _rules(data, index)
        return {**data, "validation": [*rules[:index], rule, *rules[index + 1 :]]}

    return change


def removed(index: int) -> Change:
    """Take a rule away."""

    def change(data: dict[str, object]) -> object:
        rules = _rules(data, index)
        return {**data, "validation": [*rules[:index], *rules[index + 1 :]]}

    return change


def _rules(data: dict[str, object], index: int | None = None) -> list[object]:
    rules = data.get("validation")
    found = list(rules) if isinstance(rules, list) else []
    if index is not None and index >= len(found):
        raise NotThere("rule", str(index), hint=f"the scenario has {len(found)} rules")
    return found
