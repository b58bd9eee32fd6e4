"""Listings as documents for programs: an object with a format and its rows, or one row a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson


def document(format: str, key: str, rows: Sequence[Mapping[str, object]], **more: object) -> bytes:
    """An object `{"format": ..., key: [...]}`; an array is never the top level."""
    content = {"format": f"opsdrill.{format}/1", key: list(rows), **more}
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z)


def lines(rows: Sequence[Mapping[str, object]]) -> bytes:
    """One row a line."""
    return b"\n".join(orjson.dumps(row, option=orjson.OPT_UTC_Z) for row in rows)
