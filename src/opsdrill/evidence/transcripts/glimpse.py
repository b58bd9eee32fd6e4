"""The first look at a file: enough to tell its format, whatever its size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO

import ijson

from opsdrill.evidence.transcripts.json_stream import JsonStream
from opsdrill.evidence.transcripts.rows import row

_ROWS = 50
_PATHS = 5_000


@dataclass(frozen=True)
class Glimpse:
    """What the start of a file shows.

    Args:
        head: its first bytes, without a byte order mark; see `HEAD` in `source`.
        members: the names in it, when it is a ZIP archive.
    """

    head: bytes
    members: frozenset[str] = field(default=frozenset())

    @cached_property
    def rows(self) -> tuple[dict[str, object], ...]:
        """The JSON objects that stand alone on one of its first lines."""
        found = []
        lines = self.head.split(b"\n")
        if len(lines) > 1:
            lines.pop()  # may be cut
        for line in lines[:_ROWS]:
            value = row(line)
            if isinstance(value, dict):
                found.append(value)
        return tuple(found)

    @cached_property
    def scalars(self) -> Mapping[str, object]:
        """Of a single JSON document: every path in its first part, with the first value there.

        A path is like `messages.item.role`; `item` stands for any place in a list. An object or a
        list has the value None.
        """
        found: dict[str, object] = {}
        try:
            for path, event, value in ijson.parse(JsonStream(BytesIO(self.head)), use_float=True):
                if event == "map_key" or event.startswith("end"):
                    continue
                found.setdefault(path, value)
                if len(found) >= _PATHS:
                    break
        except ijson.JSONError:
            pass  # the rest of the file, or what is wrong with it
        return found

    @property
    def shape(self) -> str:
        """What it looks like, for a message."""
        if self.members:
            return f"a ZIP archive of {len(self.members)} files"
        if not self.head.strip():
            return "an empty file"
        if len(self.rows) > 1:
            return f"JSON lines; the first has the keys {_listed(self.rows[0])}"
        if self.head.lstrip().startswith(b"["):
            keys = self._keys("item.")
            what = f"objects; one has the keys {_listed(keys)}" if keys else "no objects"
            return f"a JSON list of {what}" if "" in self.scalars else "no JSON"
        keys = self._keys("")
        if keys:
            return f"a JSON document with the keys {_listed(keys)}"
        return "JSON without any key" if "" in self.scalars else "no JSON"

    def _keys(self, below: str) -> dict[str, object]:
        """The keys right below a path."""
        found = (path.removeprefix(below) for path in self.scalars if path.startswith(below))
        return dict.fromkeys(key for key in found if key and "." not in key)

    def has(self, *paths: str) -> bool:
        """All these paths are in its first part; of a single JSON document."""
        return all(path in self.scalars for path in paths)


def _listed(keys: Mapping[str, object]) -> str:
    shown = [key[:30] for key in list(keys)[:8]]
    return ", ".join(shown) + (", ..." if len(keys) > len(shown) else "")
