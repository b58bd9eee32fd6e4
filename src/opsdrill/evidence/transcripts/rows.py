"""JSON from programs we do not know: read leniently, taken apart without trust."""

from __future__ import annotations

import json
from math import isfinite

import orjson


def row(line: bytes) -> object:
    """The JSON value that one line holds; None where it holds none.

    Bytes that are no UTF-8 and halves of surrogate pairs become U+FFFD, numbers that are none or
    beyond the machine's become null: one bad value does not lose a line.
    """
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        pass
    text = line.decode(errors="replace")
    try:
        # The C scanner takes halves of surrogate pairs, and numbers that no JSON holds.
        value = json.loads(
            text, parse_constant=lambda _: None, parse_float=_finite, parse_int=_small
        )
        return orjson.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
    except (ValueError, RecursionError):
        return None


def _finite(digits: str) -> float | None:
    value = float(digits)
    return value if isfinite(value) else None


def _small(digits: str) -> int | None:
    value = int(digits) if len(digits) <= 20 else 0
    return value if digits == str(value) and -(2**63) <= value < 2**64 else None


def within(value: object, *path: str | int) -> object:
    """What stands at a path of keys and places; None where there is no such thing."""
    for step in path:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        else:
            value = value[step] if isinstance(value, list) and len(value) > step else None
    return value


def text(value: object, *path: str | int) -> str | None:
    """The text at a path; None where there is none."""
    found = within(value, *path)
    return found if isinstance(found, str) else None


def number(value: object, *path: str | int) -> float | int | None:
    """The number at a path; None where there is none."""
    found = within(value, *path)
    return found if isinstance(found, int | float) and not isinstance(found, bool) else None


def whole(value: object, *path: str | int) -> int | None:
    """The whole number at a path; None where there is none."""
    found = within(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def mapping(value: object, *path: str | int) -> dict[str, object]:
    """The object at a path; an empty one where there is none."""
    found = within(value, *path)
    return found if isinstance(found, dict) else {}


def listing(value: object, *path: str | int) -> list[object]:
    """The list at a path; an empty one where there is none."""
    found = within(value, *path)
    return found if isinstance(found, list) else []


def spoken(content: object) -> str:
    """The text of a message's content: a text, or a list of parts of which some hold text."""
    if isinstance(content, str):
        return content
    parts = [part if isinstance(part, str) else text(part, "text") for part in listing(content)]
    return "\n".join(part for part in parts if part)


DEPTH = 100
"""Levels of lists and objects in each other that are taken as they are."""


def too_deep(value: object) -> bool:
    """Whether a value is nested so deep that those who read it later may stumble."""
    level = [value]
    for _ in range(DEPTH):
        below: list[object] = []
        for each in level:
            if isinstance(each, dict):
                below.extend(each.values())
            elif isinstance(each, list | tuple):
                below.extend(each)
        level = below
    return any(isinstance(each, dict | list | tuple) for each in level)
