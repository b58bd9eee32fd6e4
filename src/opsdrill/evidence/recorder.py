"""The recorder: turns the events of a working agent into the job record.

Events go to a sink as they come, so that a killed run leaves a readable record up to that point;
`assemble` makes the same job record from stored events as from live ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Protocol

from opsdrill.model.event import JobEvent
from opsdrill.model.job import JobRecord
from opsdrill.model.ticket import Ticket


class EventSink(Protocol):
    """Where events are kept as they come."""

    def append(self, seq: int, event: JobEvent) -> None:
        """Keep event number `seq` (from 0, without gaps)."""


class Recorder:
    """Takes events in the order they happen, stamps and numbers them, passes them on.

    Args:
        sink: where every event is kept.
        ticket: the ticket as the agent got it.
        clock: gives the moment for events without one.
    """

    def __init__(
        self,
        sink: EventSink,
        ticket: Ticket,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._sink = sink
        self._ticket = ticket
        self._clock = clock
        self._events: list[JobEvent] = []

    def record(self, event: JobEvent) -> None:
        """Keep one event; without a time it gets the present one."""
        raise NotImplementedError

    def job_record(self) -> JobRecord:
        """The job record of everything recorded so far."""
        return assemble(self._ticket, self._events)


def assemble(ticket: Ticket, events: Iterable[JobEvent]) -> JobRecord:
    """The job record that a sequence of events tells."""
    raise NotImplementedError
