"""Where a follower stands in one run."""

from __future__ import annotations

import re
from dataclasses import dataclass

from opsdrill.errors import UsageError

END = "end"
"""The place behind a run's result."""

_WRITTEN = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,18})")


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """What of a run was told. Positions of one run are ordered as its news are.

    Args:
        attempt: of which everything else is; 0: nothing was told.
        turns: how often a phase began or ended.
        events: how many of the agent's events.
    """

    attempt: int = 0
    turns: int = 0
    events: int = 0

    def __str__(self) -> str:
        return f"{self.attempt}.{self.turns}.{self.events}"


def read_position(text: str | None) -> Position | None:
    """The position that was written; None for the one behind the result.

    Raises:
        UsageError: it is none.
    """
    if text is None:
        return Position()
    if text == END:
        return None
    found = _WRITTEN.fullmatch(text)
    if found is None:
        raise UsageError(
            "that is no place in a run's events", hint="send the id of an event as it came"
        )
    return Position(*map(int, found.groups()))
