"""Idempotency keys that end with their process, for tests and trials."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from threading import RLock

from opsdrill.store.requests import KEPT, LOST, Claimed, check_digest, check_key


@dataclass(slots=True)
class _Entry:
    digest: str
    at: datetime
    answer: bytes | None = None


class MemoryRequests:
    """A `RequestBook` in memory."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._entries: dict[tuple[str, str], _Entry] = {}

    def claim(self, who: str, key: str, digest: str, now: datetime) -> Claimed:
        check_key(key)
        with self._lock:
            self._entries = {
                place: entry
                for place, entry in self._entries.items()
                if now - entry.at < (LOST if entry.answer is None else KEPT)
            }
            entry = self._entries.setdefault((who, key), mine := _Entry(digest, now))
            if entry is mine:
                return Claimed("new")
            check_digest(key, entry.digest, digest)
            return Claimed("under way" if entry.answer is None else "answered", entry.answer)

    def answer(self, who: str, key: str, body: bytes) -> None:
        with self._lock:
            if entry := self._entries.get((who, key)):
                entry.answer = body

    def release(self, who: str, key: str) -> None:
        with self._lock:
            entry = self._entries.get((who, key))
            if entry and entry.answer is None:
                del self._entries[who, key]
