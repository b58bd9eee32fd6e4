"""Times in transcripts: made comparable, and counted where they cannot be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock:
    """Reads the times of one transcript.

    A time without a zone is taken as UTC: within one transcript such times compare with each
    other, and with no others.
    """

    def __init__(self) -> None:
        self.zoned = 0
        self.naive = 0
        self.unread = 0

    def text(self, value: object) -> datetime | None:
        """A moment written as ISO 8601; None for anything else."""
        if value is None or value == "":
            return None
        try:
            moment = datetime.fromisoformat(value) if isinstance(value, str) else None
        except ValueError:
            moment = None
        if moment is None:
            self.unread += 1
            return None
        if moment.tzinfo is None:
            self.naive += 1
            return moment.replace(tzinfo=UTC)
        try:
            moment = moment.astimezone(UTC)
        except OverflowError:
            self.unread += 1
            return None
        self.zoned += 1
        return moment

    def count(self, value: object, a_second: int = 1) -> datetime | None:
        """A moment counted since 1970 in UTC; None for anything else.

        Args:
            value: a number, or a text with one.
            a_second: how many of its units make a second, e.g. 1000 for milliseconds.
        """
        if value is None or isinstance(value, bool):
            return None
        try:
            if isinstance(value, float):
                since = timedelta(seconds=value / a_second)
            else:
                # Whole numbers are kept to the microsecond, past 2^53 too.
                since = timedelta(microseconds=int(str(value)) * 1_000_000 // a_second)
            moment = _EPOCH + since
        except (ValueError, OverflowError):
            self.unread += 1
            return None
        self.zoned += 1
        return moment
