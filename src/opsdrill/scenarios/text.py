"""A scenario as text that loads again as it is: JSON, or YAML that people like to read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from opsdrill.errors import InvalidInput
from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.yaml import parse_yaml

_PLAIN = re.compile(r"[A-Za-z/_](?:[A-Za-z0-9 _/.,()=+@%~^;$-]*[A-Za-z0-9_/.)=+%~$-])?")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_WORDS = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))
"""What some reader of YAML takes for something else than a text."""
_LINES = re.compile(r"[^\s\x00-\x1f\x7f-\x9f][^\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff]*")
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def as_data(scenario: Scenario, *, defaults: bool = True) -> dict[str, object]:
    """The scenario as plain data, as it stands in files.

    Args:
        defaults: write out what is as when nobody says anything.
    """
    return scenario.model_dump(
        mode="json", by_alias=True, exclude_none=True, exclude_defaults=not defaults
    )


def as_json(scenario: Scenario, *, defaults: bool = True) -> str:
    """The scenario as JSON, indented."""
    data = as_data(scenario, defaults=defaults)
    return json.dumps(data, ensure_ascii=False, indent=2) + "\n"


def as_yaml(scenario: Scenario) -> str:
    """The scenario as YAML, without what is as when nobody says anything."""
    data = as_data(scenario, defaults=False)
    text = "\n".join(_lines(data)) + "\n"
    try:
        if parse_yaml(text).data == data:
            return text
    except InvalidInput:
        pass
    # Some text in it is beyond what is written nicely here; YAML reads this as well.
    return json.dumps(data, ensure_ascii=True, indent=2) + "\n"


def _lines(value: object) -> Iterator[str]:
    """The lines of a value that stands on lines of its own."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            name = key if _KEY.fullmatch(key) and key not in _WORDS else _quoted(key)
            yield from _entry(f"{name}:", item)
    elif isinstance(value, list) and value:
        for item in value:
            if isinstance(item, (dict, list)) and item:
                first, *others = _lines(item)
                yield f"- {first}"
                yield from map(_indented, others)
            else:
                yield from _entry("-", item)
    else:
        yield _scalar(value)


def _entry(head: str, value: object) -> Iterator[str]:
    if isinstance(value, (dict, list)) and value:
        yield head
        yield from map(_indented, _lines(value))
    elif isinstance(value, str) and _is_block(value):
        chomp = "" if value.endswith("\n") else "-"
        yield f"{head} |{chomp}"
        yield from map(_indented, value.removesuffix("\n").split("\n"))
    else:
        yield f"{head} {_scalar(value)}"


def _indented(line: str) -> str:
    return f"  {line}" if line else line


def _is_block(text: str) -> bool:
    whole = _LINES.fullmatch(text) is not None and "\n" in text.rstrip("\n")
    return whole and not text.endswith("\n\n") and not re.search(r"^[ \t]+$", text, re.MULTILINE)


def _scalar(value: object) -> str:
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and value.casefold() not in _WORDS
        return value if plain and " #" not in value else _quoted(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value)


def _quoted(text: str) -> str:
    written = json.dumps(text, ensure_ascii=False)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", written)
