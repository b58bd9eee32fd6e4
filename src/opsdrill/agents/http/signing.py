"""Signatures: HMAC-SHA256 over the moment and the body, so that neither can be changed.

The signed text is `TIMESTAMP.BODY`, with the seconds since 1970 in digits. A signature that is
older than `FRESH_SECONDS` is refused, so that a request that was overheard is of no use for long;
within that time the numbers of the events keep one from counting twice.
"""

from __future__ import annotations

import hmac

TIMESTAMP = "opsdrill-timestamp"
SIGNATURE = "opsdrill-signature"
FRESH_SECONDS = 300.0


def signed(key: bytes, moment: int, body: bytes) -> dict[str, str]:
    """The header fields that sign a body.

    Args:
        key: the shared secret.
        moment: seconds since 1970.
    """
    return {TIMESTAMP: str(moment), SIGNATURE: f"v1={_digest(key, str(moment), body)}"}


def refusal(key: bytes, fields: dict[str, str], body: bytes, now: float) -> str | None:
    """Why a signature does not hold, or None.

    Args:
        key: the shared secret.
        fields: the header fields, their names in small letters.
        now: seconds since 1970.
    """
    moment, signature = fields.get(TIMESTAMP, ""), fields.get(SIGNATURE, "")
    if not (moment.isascii() and moment.isdigit() and len(moment) <= 12):
        return f"there is no {TIMESTAMP}"
    expected = f"v1={_digest(key, moment, body)}"
    if not hmac.compare_digest(expected.encode(), signature.encode(errors="replace")):
        return "the signature does not fit the body"
    if abs(now - int(moment)) > FRESH_SECONDS:
        return f"the signature is not of the last {FRESH_SECONDS:g} seconds"
    return None


def _digest(key: bytes, moment: str, body: bytes) -> str:
    return hmac.new(key, moment.encode() + b"." + body, "sha256").hexdigest()
