"""Pydantic's errors in our words, so that no front end ever words them itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from opsdrill.errors import Problem


def dotted(location: Sequence[str | int]) -> str:
    """`("validation", 2, "pattern")` -> `validation[2].pattern`."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def locate(location: Sequence[str | int]) -> tuple[str | int, ...]:
    """A pydantic location without the tags of its unions (written `<tag>` in our models)."""
    return tuple(
        part
        for part in location
        if not (isinstance(part, str) and part.startswith("<") and part.endswith(">"))
    )


def from_validation(error: ValidationError) -> list[tuple[tuple[str | int, ...], Problem]]:
    """Each of pydantic's errors as a location and our problem."""
    found = []
    for item in error.errors(include_url=False):
        location = locate(item["loc"])
        found.append((location, Problem(dotted(location), _message(dict(item)))))
    return found


_KINDS = {
    "string_type": "must be a text",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "string_unicode": "is not valid Unicode",
    "missing": "is missing",
    "finite_number": "must be a finite number",
}


def _message(item: dict[str, Any]) -> str:
    kind, context = str(item["type"]), item.get("ctx") or {}
    if kind == "extra_forbidden":
        return "is not a known key here"
    text = _bounds(kind, context) or _KINDS.get(kind) or str(item["msg"])
    if kind == "string_pattern_mismatch":
        text = f"must match {context['pattern']}"
    if kind == "literal_error":
        text = f"must be one of {context['expected']}"
    if kind.endswith("_type") or kind in ("literal_error", "string_pattern_mismatch"):
        text += f", not {_shown(item.get('input'))}"
    return text


def _bounds(kind: str, context: dict[str, Any]) -> str | None:
    match kind:
        case "greater_than_equal":
            return f"must be at least {context['ge']}"
        case "greater_than":
            return f"must be more than {context['gt']}"
        case "less_than_equal":
            return f"must be at most {context['le']}"
        case "string_too_short":
            return "must not be empty"
        case "string_too_long":
            return f"must have at most {context['max_length']} characters"
        case "too_short":
            return f"must have at least {context['min_length']} item(s)"
        case "too_long":
            return f"must have at most {context['max_length']} items"
        case _:
            return None


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "a list"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
