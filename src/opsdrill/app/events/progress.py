"""Where a follower stands in a batch, or in all runs: how far each run had come when it heard last.

Written, it is the moment from which on runs count, a check over their ids, and a digit a run.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from opsdrill.errors import UsageError
from opsdrill.model.result import RunState

MOST_RUNS = 5000
_LONGEST = 8192
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

STAGES: Mapping[RunState, int] = {
    "planned": 1, "running": 2, "done": 3, "cancelled": 3, "interrupted": 3,
}  # fmt: skip
OVER = 3


@dataclass(frozen=True, slots=True)
class Progress:
    """How far runs had come.

    Args:
        since: runs created before it do not count.
        check: over the ids of the others, in the order created.
        stages: a digit each: 0 was not told, 1 planned, 2 running, 3 over.
    """

    since: datetime
    check: int
    stages: str

    def __str__(self) -> str:
        text = json.dumps([(self.since - _EPOCH) // _MICROSECOND, self.check, self.stages])
        return base64.urlsafe_b64encode(zlib.compress(text.encode())).decode().rstrip("=")


def progress(since: datetime, stages: Mapping[str, int]) -> Progress:
    """How far runs came; `stages` by id, in the order created."""
    return Progress(since, checked(stages), "".join(map(str, stages.values())))


def checked(runs: Iterable[str]) -> int:
    """The check over ids."""
    return zlib.crc32("\n".join(runs).encode("utf-8", "surrogatepass"))


def read_progress(text: str) -> Progress:
    """The progress that was written.

    Raises:
        UsageError: it is none.
    """
    try:
        if len(text) > _LONGEST:
            raise ValueError
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        opened = zlib.decompressobj()
        plain = opened.decompress(packed, MOST_RUNS + 100)
        if opened.unconsumed_tail:
            raise ValueError
        value = json.loads(plain)
        match value:
            case [int() as since, int() as check, str() as stages] if set(stages) <= set("0123"):
                return Progress(_EPOCH + since * _MICROSECOND, check, stages)
    except (ValueError, OverflowError, RecursionError, zlib.error, binascii.Error):
        pass
    raise UsageError(
        "that is no place in the events of runs", hint="send the id of an event as it came"
    )
