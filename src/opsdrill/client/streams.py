"""Server-sent events, read as they come, and what it takes to go on after a break.

The form is that of https://html.spec.whatwg.org/#server-sent-events.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from opsdrill.client.refusals import Unreachable

MOST_BYTES = 16 * 1024 * 1024
"""Of one event."""
BREAKS = 10
"""Breaks in a row, without anything heard between, after which a follower gives up."""
QUIET_SECONDS = 60.0
"""Without even a comment, which the server sends every 15 seconds, a connection is lost."""
AGAIN_SECONDS = 1.0
MOST_AGAIN_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Event:
    """One event.

    Args:
        kind: `phase`, `job`, `step`, `result`, `run` or `reset`.
        data: what it tells, as plain data.
        id: where to go on from behind it; None: it is gone when it was not heard.
    """

    kind: str
    data: dict[str, Any]
    id: str | None


@dataclass(slots=True)
class Following:
    """What is followed, and how far it was heard.

    Args:
        path: of the events.
        query: its parameters.
        ends: the kind of event that is the last; None: it does not end.
        last: the id of the last event that was heard.
    """

    path: str
    query: dict[str, str] = field(default_factory=dict)
    ends: str | None = None
    last: str | None = None
    again: float = AGAIN_SECONDS
    breaks: int = 0

    def headers(self) -> dict[str, str]:
        known = {"last-event-id": self.last} if self.last is not None else {}
        return {"accept": "text/event-stream", **known}

    def heard(self, event: Event) -> bool:
        """Take note of an event; whether it was the last."""
        self.breaks = 0
        if event.id is not None:
            self.last = event.id
        return event.kind == self.ends

    def broke(self, why: str) -> float:
        """Take note of a break; seconds to wait. Raises Unreachable where it is one too many."""
        self.breaks += 1
        if self.breaks >= BREAKS:
            raise Unreachable(f"the events broke off {BREAKS} times in a row: {why}")
        return min(self.again * float(2 ** (self.breaks - 1)), MOST_AGAIN_SECONDS)


class Reader:
    """Makes events of the bytes of one connection.

    Args:
        following: told how long the server wants to be left alone after a break.
    """

    def __init__(self, following: Following) -> None:
        self._following = following
        self._rest = bytearray()
        self._kind = "message"
        self._data: list[str] = []
        self._id: str | None = None
        self._size = 0

    def read(self, piece: bytes) -> Iterator[Event]:
        """The events that end in these bytes. Raises Unreachable for one without an end."""
        self._rest += piece
        while (at := self._rest.find(b"\n")) >= 0:
            line = self._rest[:at].removesuffix(b"\r").decode("utf-8", "replace")
            del self._rest[: at + 1]
            self._size += len(line)
            yield from self._line(line)
        if len(self._rest) + self._size > MOST_BYTES:
            raise Unreachable(f"an event is larger than {MOST_BYTES} bytes")

    def _line(self, line: str) -> Iterator[Event]:
        if not line:
            if self._data:
                yield Event(self._kind, self._parsed(), self._id)
            self._kind, self._data, self._id, self._size = "message", [], None, 0
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._kind = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit() and len(value) < 7:
            self._following.again = min(int(value) / 1000, MOST_AGAIN_SECONDS)
        elif not name:
            self._size = 0 if not self._data else self._size

    def _parsed(self) -> dict[str, Any]:
        try:
            found = json.loads("\n".join(self._data))
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise Unreachable("an event holds no JSON object")
        return found
