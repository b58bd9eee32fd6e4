"""Idempotency keys: a start that is sent twice happens once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, Protocol

from opsdrill.errors import Conflict, UsageError

KEPT = timedelta(hours=24)
"""How long an answer is kept."""
LOST = timedelta(minutes=10)
"""After this long, a claim without an answer is one whose process is no more."""

KEY_LIMIT = 200
"""Characters of a key."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """What became of a claim.

    `new`: the caller does the work, then calls `answer` or `release`. `answered`: `answer` is what
    was answered before. `under way`: another call with this key is at work.
    """

    state: Literal["new", "answered", "under way"]
    answer: bytes | None = None


class RequestBook(Protocol):
    """Keys by the caller who chose them. Every call raises StoreError as the store does."""

    def claim(self, who: str, key: str, digest: str, now: datetime) -> Claimed:
        """Claim a key; of several calls at once, one is `new`.

        Args:
            who: the caller, as a token's id.
            key: the key that the caller chose.
            digest: the hash of what the caller asks for.
            now: the present moment, in UTC.

        Raises:
            Conflict: the key was used for something else.
            UsageError: the key has more than 200 characters.
        """

    def answer(self, who: str, key: str, body: bytes) -> None:
        """Keep the answer to a claim; nothing for one that is not there."""

    def release(self, who: str, key: str) -> None:
        """Give up a claim without an answer, so that the key may be used again."""


def check_key(key: str) -> None:
    """Raises UsageError for a key that is too long to be kept."""
    if len(key) > KEY_LIMIT:
        raise UsageError(f"an idempotency key has at most {KEY_LIMIT} characters")


def check_digest(key: str, known: str, digest: str) -> None:
    """Raises Conflict where a key was used for something else."""
    if known != digest:
        raise Conflict(
            f"the idempotency key {key[:100]!r} was used for another request",
            hint="choose a new key for each request",
        )
