"""The opaque cursors of pages: each names the last row seen, or a number to go on from."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta

from opsdrill.errors import UsageError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LARGEST = 2**63
_DIGITS = 9
PAGE_LIMIT = 1000


def microseconds(moment: datetime) -> int:
    """Microseconds since 1970 in UTC, exactly."""
    return (moment - EPOCH) // _MICROSECOND


def moment(value: int) -> datetime:
    """The moment that `microseconds` counts."""
    return EPOCH + value * _MICROSECOND


def encode(created_at: int, number: int) -> str:
    """The cursor behind a row: its creation in microseconds, and its number."""
    return base64.urlsafe_b64encode(json.dumps([created_at, number]).encode()).decode()


def decode(cursor: str) -> tuple[int, int]:
    """What `encode` was given.

    Raises:
        UsageError: this is no cursor of ours.
    """
    match _decoded(cursor):
        case [int() as created_at, int() as number] if max(abs(created_at), abs(number)) < _LARGEST:
            return created_at, number
    raise _foreign()


def encode_key(key: str) -> str:
    """The cursor behind a scenario, in a listing by key."""
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode()


def decode_key(cursor: str) -> str:
    """What `encode_key` was given. Raises UsageError as `decode`."""
    match _decoded(cursor):
        case str() as key:
            return key
    raise _foreign()


def encode_number(number: int) -> str:
    """The cursor behind the piece with this number, of a list that is counted."""
    return base64.urlsafe_b64encode(b"%d" % number).decode().rstrip("=")


def decode_number(cursor: str) -> int:
    """What `encode_number` was given. Raises UsageError as `decode`."""
    padded = cursor + "=" * (-len(cursor) % 4)
    try:
        text = base64.b64decode(padded, altchars=b"-_", validate=True)
    except ValueError:
        raise _foreign() from None
    if not text.isdigit() or len(text) > _DIGITS:
        raise _foreign()
    return int(text)


def _decoded(cursor: str) -> object:
    try:
        return json.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        return None


def _foreign() -> UsageError:
    return UsageError("the cursor is none that a page gave", hint="start again without a cursor")


def check_limit(limit: int) -> None:
    """Raises UsageError for a page size outside 1..1000."""
    if not 1 <= limit <= PAGE_LIMIT:
        raise UsageError(f"a page has 1 to {PAGE_LIMIT} rows, not {limit}")
