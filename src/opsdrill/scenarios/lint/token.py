"""A text of a YAML or JSON file as it is written, changed without touching the rest of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from opsdrill.errors import InvalidInput
from opsdrill.scenarios.lint.replacement import Replacement, replaced
from opsdrill.scenarios.yaml import parse_yaml

_PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_DOUBLE = re.compile(rf"{_PAIR}|\\x..|\\u.{{4}}|\\U.{{8}}|\\.|[^\\\r\n]")
_SINGLE = re.compile(r"''|[^'\r\n]")
_BLOCK = re.compile(r"[|>][-+0-9]*[ \t]*(?:#[^\r\n]*)?(?:\r\n|\n)")

Span = tuple[int, int]


def changed(token: str, value: str, changes: Iterable[Replacement]) -> str | None:
    """The written text of a value after changes of the value; None where it cannot be done.

    Args:
        token: how the value is written, quotes included.
        value: what that means.
        changes: of the value. A character outside ASCII that is written as an escape is meant, and
            is not changed.
    """
    places = _places(token, value)
    if places is None:
        return None
    edits = []
    for change in changes:
        if any(
            token[places[at][0]] == "\\" and not value[at].isascii()
            for at in range(change.start, change.end)
        ):
            return None
        start, end = _between(places, change)
        edits.append(Replacement(start, end, _written(token, change.text)))
    return _sound(token, replaced(token, edits), replaced(value, changes))


def _between(places: list[Span], change: Replacement) -> Span:
    if change.start < change.end:
        return places[change.start][0], places[change.end - 1][1]
    at = places[change.start][0] if change.start < len(places) else places[-1][1]
    return at, at


def _places(token: str, value: str) -> list[Span] | None:
    """Where in the token each character of the value is written; None where that is not known."""
    if token[:1] in ('"', "'") and len(token) > 1:
        pieces = (_DOUBLE if token[0] == '"' else _SINGLE).finditer(token, 1, len(token) - 1)
        found = [piece.span() for piece in pieces]
    elif token[:1] in ("|", ">"):
        found = list(_block(token))[: len(value)]
        text = "".join("\n" if token[a:b] == "\r\n" else token[a:b] for a, b in found)
        if text != value or (token[0] == ">" and "\n" in value.rstrip("\n")):
            return None
    elif token != value:
        return None
    else:
        found = [(at, at + 1) for at in range(len(token))]
    return found if found and len(found) == len(value) else None


def _block(token: str) -> Iterator[Span]:
    """The characters of a | text, without what it is indented by."""
    header = _BLOCK.match(token)
    if header is None or re.search(r"[0-9]", header.group().partition("#")[0]):
        return  # an indentation that is written as a number
    lines = token[header.end() :].splitlines(keepends=True)
    indent = min((len(line) - len(line.lstrip(" ")) for line in lines if line.strip()), default=0)
    at = header.end()
    for line in lines:
        body = line.rstrip("\r\n")
        yield from ((at + i, at + i + 1) for i in range(indent, len(body)))
        if len(body) < len(line):
            yield at + len(body), at + len(line)
        at += len(line)


def _written(token: str, text: str) -> str:
    """A text as it stands inside quotes like the token's."""
    if token.startswith('"'):
        return json.dumps(text, ensure_ascii=False)[1:-1]
    return text.replace("'", "''") if token.startswith("'") else text


def _sound(before: str, after: str, value: str) -> str:
    """The text without quotes, put into quotes where it would mean something else without."""
    if before[:1] in ('"', "'", "|", ">"):
        return after
    try:
        alone = parse_yaml(f"a: {after}\n").data == {"a": value}
        if alone and parse_yaml(f"[{after}, b]\n").data == [value, "b"]:
            return after
    except InvalidInput:
        pass
    return "'" + value.replace("'", "''") + "'"
