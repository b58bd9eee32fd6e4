"""Listings and models as documents for programs.

Names of files and what agents did may hold halves of surrogate pairs, which no UTF-8 can: they are
written as the escapes that JSON has for them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

import orjson
from pydantic import BaseModel
from pydantic_core import PydanticSerializationError

_REPLACED = "\ufffd"


def document(format: str, key: str, rows: Sequence[Mapping[str, object]], **more: object) -> bytes:
    """An object `{"format": ..., key: [...]}`; an array is never the top level."""
    return written({"format": f"opsdrill.{format}/1", key: list(rows), **more}, indented=True)


def lines(rows: Sequence[Mapping[str, object]]) -> bytes:
    """One row a line."""
    return b"\n".join(written(row) for row in rows)


def written(value: object, *, indented: bool = False) -> bytes:
    """A plain value as JSON; moments in it are written in UTC."""
    option = orjson.OPT_UTC_Z | (orjson.OPT_INDENT_2 if indented else 0)
    try:
        return orjson.dumps(value, option=option)
    except TypeError:
        return _escaped(value, indented)


def of_model(model: BaseModel, *, indented: bool = True) -> bytes:
    """A model as JSON, under the names that its files have."""
    try:
        content = model.model_dump_json(indent=2 if indented else None, by_alias=True)
        # Pydantic refuses halves of surrogate pairs, and replaces them in the keys of an object.
        if _REPLACED not in content:
            return content.encode()
    except PydanticSerializationError:
        pass
    return _escaped(model.model_dump(by_alias=True), indented)


def _escaped(value: object, indented: bool) -> bytes:
    separators = None if indented else (",", ":")
    indent = 2 if indented else None
    return json.dumps(value, default=_instant, separators=separators, indent=indent).encode()


def _instant(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(f"a {type(value).__name__} is no JSON value")
