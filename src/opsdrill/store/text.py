"""Texts as columns can hold them: no NUL character and no lone surrogate, yet nothing lost.

SQLite's driver refuses lone surrogates, PostgreSQL also NUL; both occur in what agents, hosts and
command lines give. Escaping goes character by character, so equality and prefixes survive it.
"""

from __future__ import annotations

import re

from sqlalchemy import Dialect, Text
from sqlalchemy.types import TypeDecorator

_UNSAFE = re.compile("[\\\\\0\ud800-\udfff]")
_ESCAPED = re.compile(r"\\(?:u([0-9a-f]{4})|\\)")


def escape(text: str) -> str:
    r"""`text` with a backslash as `\\`, NUL as `\u0000`, a lone surrogate as `\udXXX`."""
    return _UNSAFE.sub(
        lambda found: "\\\\" if found[0] == "\\" else f"\\u{ord(found[0]):04x}", text
    )


def unescape(text: str) -> str:
    """What `escape` was given."""
    if "\\" not in text:
        return text
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else "\\", text)


class AnyText(TypeDecorator[str]):
    """A text column for any Python string; on PostgreSQL it sorts by code point, as on SQLite."""

    impl = Text().with_variant(Text(collation="C"), "postgresql")
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else escape(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else unescape(value)
