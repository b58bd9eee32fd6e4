"""Pydantic's errors in our words, so that no front end ever words them itself."""

from __future__ import annotations

import json
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, Tag, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from opsdrill.errors import Problem
from opsdrill.model.fields import SHAPES

Location = tuple[str | int, ...]

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]{1,100}")
_DEEPEST = 24
_SUGGESTED = 200


@dataclass(frozen=True, slots=True)
class Refusal:
    """One thing that a model refused.

    `on_key` says that the key itself is wrong, not its value.
    """

    location: Location
    problem: Problem
    on_key: bool = False


def dotted(location: Sequence[str | int]) -> str:
    """`("validation", 2, "pattern")` -> `validation[2].pattern`."""
    text = ""
    for part in location[:_DEEPEST]:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{json.dumps(_cut(part))}]"
    return text if len(location) <= _DEEPEST else f"{text}..."


def locate(location: Sequence[str | int]) -> Location:
    """A pydantic location without the tags of its unions (written `<tag>` in our models)."""
    return tuple(part for part in location if not _is_tag(part) and part != "[key]")


def refusals(
    error: ValidationError, model: type[BaseModel] | None = None, data: object = None
) -> list[Refusal]:
    """Each of pydantic's errors in our words.

    Args:
        error: what validation raised.
        model: the model that was asked for; with it an unknown key is compared to the known ones.
        data: what was validated; with it a location follows the data as it was written, short
            forms included.
    """
    found: list[Refusal] = []
    for item in error.errors(include_url=False):
        # Comparing keys takes time; past so many nobody reads what is suggested.
        found.append(_refusal(item, model if len(found) < _SUGGESTED else None, data))
    return found


def from_validation(error: ValidationError) -> list[tuple[Location, Problem]]:
    """Each of pydantic's errors as a location and our problem."""
    return [(refusal.location, refusal.problem) for refusal in refusals(error)]


def worded(item: ErrorDetails) -> str:
    """One of pydantic's errors in our words, for one that came without its exception."""
    return _message(item, item.get("input"))


def _refusal(item: ErrorDetails, model: type[BaseModel] | None, data: object) -> Refusal:
    location = locate(item["loc"]) if data is None else _as_written(item["loc"], data)
    on_key = item["type"] == "extra_forbidden" or item["loc"][-1:] == ("[key]",)
    value = item.get("input") if data is None else _value_at(location, data, item.get("input"))
    message, suggestion = _message(item, value), None
    if item["type"] == "extra_forbidden" and model is not None:
        known = sorted(_keys_at(model, item["loc"][:-1]))
        message, suggestion = _unknown(str(item["loc"][-1]), known)
    return Refusal(location, Problem(dotted(location), message, suggestion=suggestion), on_key)


def _is_tag(part: str | int) -> bool:
    return isinstance(part, str) and part.startswith("<") and part.endswith(">")


def _as_written(location: Sequence[str | int], data: object) -> Location:
    """The part of a pydantic location that the data has, and one missing key behind it."""
    found: list[str | int] = []
    for part in location:
        items: Mapping[str | int, object] | None = None
        if isinstance(data, dict):
            items = data
        elif isinstance(data, list) and isinstance(part, int):
            items = dict(enumerate(data[part : part + 1], part))
        if items is not None and part in items:
            data = items[part]
            found.append(part)
        elif not (_is_tag(part) or part == "[key]"):
            return (*found, part) if isinstance(data, dict) else tuple(found)
    return tuple(found)


def _value_at(location: Location, data: object, seen: object) -> object:
    """A number as it was written, where the model saw it as another one; else what it saw."""
    if not isinstance(seen, float):
        return seen
    for part in location:
        if isinstance(data, dict):
            data = data.get(part)
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
    return data if isinstance(data, int) else seen


def _unknown(key: str, known: list[str]) -> tuple[str, str | None]:
    close = get_close_matches(key[:100], known, n=1)
    if close:
        return f"is not a known key here; did you mean `{close[0]}`?", close[0]
    names = ", ".join(known)
    return "is not a known key here" + (f"; known: {names}" if names else ""), None


# --- the keys that a model knows at a location ---


def _keys_at(model: type[BaseModel], location: Sequence[str | int]) -> Iterator[str]:
    kinds: list[Any] = [model]
    for part in location:
        kinds = [inner for kind in kinds for inner in _inside(kind, part)]
    for kind in kinds:
        for plain in _models(kind):
            yield from (field.alias or name for name, field in plain.model_fields.items())


def _inside(kind: Any, part: str | int) -> Iterator[Any]:
    """The types that may stand under a key, an index or a union's tag."""
    if _is_tag(part):
        yield from (choice for choice in _choices(kind) if _tag_of(choice) == part)
        return
    for choice in _choices(kind):
        plain = _plain(choice)
        if isinstance(plain, type) and issubclass(plain, BaseModel):
            yield from (
                _type_of(f) for n, f in plain.model_fields.items() if part == (f.alias or n)
            )
        elif isinstance(part, int) and get_origin(plain) in (tuple, list):
            yield get_args(plain)[0]
        elif get_origin(plain) is dict:
            yield get_args(plain)[1]


def _choices(kind: Any) -> Iterator[Any]:
    plain = _plain(kind)
    if get_origin(plain) in (Union, types.UnionType):
        for choice in get_args(plain):
            yield from [choice] if _tag_of(choice) else _choices(choice)
    else:
        yield kind


def _models(kind: Any) -> Iterator[type[BaseModel]]:
    for choice in _choices(kind):
        plain = _plain(choice)
        if isinstance(plain, type) and issubclass(plain, BaseModel):
            yield plain


def _plain(kind: Any) -> Any:
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    return kind


def _tag_of(kind: Any) -> str | None:
    metadata = get_args(kind)[1:] if get_origin(kind) is Annotated else ()
    return next((item.tag for item in metadata if isinstance(item, Tag)), None)


def _type_of(field: FieldInfo) -> Any:
    return field.annotation


# --- the words ---

_KINDS = {
    "string_type": "must be a text",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number of fewer digits",
    "float_parsing": "must be a number",
    "bool_parsing": "must be true or false",
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
    "invalid_key": "has a key that is not a text",
    "recursion_loop": "is nested too deep",
    "extra_forbidden": "is not a known key here",
}
_WORDS = {"True": "true", "False": "false"}
_OURS_WITH_INPUT = frozenset({"not_absolute", "outside"})


def _message(item: ErrorDetails, value: object) -> str:
    kind, context = str(item["type"]), item.get("ctx") or {}
    text = _bounds(kind, context) or _KINDS.get(kind) or str(item["msg"])
    if kind == "string_pattern_mismatch":
        text = SHAPES.get(str(context["pattern"])) or f"must match {context['pattern']}"
    if kind == "literal_error":
        choices = str(context["expected"]).replace("'", "").replace(" or ", ", ")
        choices = _WORDS.get(choices, choices)
        text = f"must be one of {choices}" if ", " in choices else f"must be {choices}"
    if kind.endswith("_type") or kind in _SHOWING:
        text += f", not {shown(value)}"
    if kind == "string_type" and isinstance(value, (bool, int, float)):
        text += "; put it in quotes"
    return text


_SHOWING = (
    "literal_error", "string_pattern_mismatch", "greater_than_equal", "greater_than",
    "less_than_equal", "int_from_float", "int_parsing", "float_parsing", "bool_parsing",
    *_OURS_WITH_INPUT,
)  # fmt: skip


def _bounds(kind: str, context: dict[str, Any]) -> str | None:
    match kind:
        case "greater_than_equal":
            return f"must be at least {context['ge']}"
        case "greater_than":
            return f"must be more than {context['gt']:g}"
        case "less_than_equal":
            return f"must be at most {context['le']:g}"
        case "string_too_short":
            return "must not be empty"
        case "string_too_long":
            return f"must have at most {context['max_length']} characters"
        case "too_short":
            least = context["min_length"]
            return "must not be empty" if least == 1 else f"must have at least {least} items"
        case "too_long":
            return (
                f"must have at most {context['max_length']} items, not {context['actual_length']}"
            )
        case _:
            return None


def shown(value: object) -> str:
    """A wrong value as it can stand in a sentence, cut where it is long."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "a list"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int) and value.bit_length() > 200:
        return "a number of many digits"
    return _cut(repr(_cut(value, 200) if isinstance(value, str) else value))


def _cut(text: str, length: int = 60) -> str:
    return text if len(text) <= length else f"{text[: length - 3]}..."
