"""The recorder: turns the events of a working agent into the job record.

Events go to a sink as they come, so that a killed run leaves a readable record up to that point;
`assemble` makes the same job record from stored events as from live ones.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Protocol

from opsdrill.evidence.cut import CALL_KEPT, OutputBudget
from opsdrill.evidence.draft import Draft
from opsdrill.evidence.mask import Mask
from opsdrill.evidence.masking import masked
from opsdrill.model.event import JobEvent
from opsdrill.model.job import JobRecord
from opsdrill.model.ticket import Ticket

__all__ = ["EventSink", "Recorder", "assemble"]


class EventSink(Protocol):
    """Where events are kept as they come."""

    def append(self, seq: int, event: JobEvent) -> None:
        """Keep event number `seq` (from 0, without gaps)."""


class Recorder:
    """Takes events in the order they happen, stamps and numbers them, passes them on.

    Secrets are masked before an event is looked at at all; then output past what a job record can
    hold is cut (see `OutputBudget`).

    May be called from several threads; the order of the calls is the order of the record.

    Args:
        sink: where every event is kept.
        ticket: the ticket as the agent got it.
        clock: gives the moment for events without one.
        mask: what is masked; without it well-known tokens are.
    """

    def __init__(
        self,
        sink: EventSink,
        ticket: Ticket,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        mask: Mask | None = None,
    ) -> None:
        self._sink = sink
        self._clock = clock
        self._mask = mask or Mask()
        self._draft = Draft(masked(self._mask, ticket))
        self._budget = OutputBudget(each=CALL_KEPT)
        self._seq = 0
        self._last: datetime | None = None
        self._lock = threading.Lock()

    @property
    def mask(self) -> Mask:
        """What is masked in all that is kept."""
        return self._mask

    def record(self, event: JobEvent) -> None:
        """Keep one event; without a time it gets the present one.

        An event that the sink could not keep is not in the record either.

        Raises:
            EventRefused: it cannot follow what was recorded before (see `Draft.check`). Nothing
                is kept of it, and the record stays as it was.
        """
        event = masked(self._mask, event)
        with self._lock:
            if event.at is None:
                event = event.model_copy(update={"at": self._now()})
            self._draft.check(event)
            event = self._budget.spend(event)
            self._sink.append(self._seq, event)
            self._seq += 1
            self._draft.take(event)

    def _now(self) -> datetime:
        """The present moment; never before the last one given, though a clock may be set back."""
        now = self._clock().astimezone(UTC)
        self._last = now if self._last is None else max(now, self._last)
        return self._last

    def job_record(self) -> JobRecord:
        """The job record of everything recorded so far."""
        with self._lock:
            return self._draft.job_record()


def assemble(ticket: Ticket, events: Iterable[JobEvent]) -> JobRecord:
    """The job record that a sequence of events tells.

    A sequence that breaks off (the run was killed) gives a job of status `failed`, the stop
    reason `interrupted`, and a coverage that is nowhere `whole`.

    Raises:
        EventRefused: an event cannot follow those before it.
    """
    draft = Draft(ticket)
    for event in events:
        draft.check(event)
        draft.take(event)
    return draft.job_record()
