"""Texts that callers send, as data."""

from __future__ import annotations

from opsdrill.scenarios.document import decoded
from opsdrill.scenarios.json import parse_json


def decoded_text(content: bytes) -> str:
    """UTF-8 as text. Raises InvalidInput with line and column of what is none."""
    return decoded(content, None)


def plain_json(text: str) -> object:
    """A JSON document as plain data. Raises InvalidInput with line and column."""
    return parse_json(text).data
