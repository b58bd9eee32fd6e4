"""Reap: what processes that are no more left behind is found and put right, at every start."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from opsdrill.errors import OpsDrillError
from opsdrill.evidence.recorder import assemble
from opsdrill.hosts.driver import Driver
from opsdrill.runner.archive import Archive
from opsdrill.runner.owner import is_gone
from opsdrill.runner.phases.execute import ticket
from opsdrill.store.store import Store

LOST = "the process that worked on the run ended; what it had not stored yet is lost"

log = logging.getLogger(__name__)


async def reap(archive: Archive, drivers: Iterable[Driver]) -> list[str]:
    """Mark the runs of dead processes as interrupted, and remove what is left of their hosts.

    A run whose process cannot be seen from here, such as one of another machine, is left alone.

    Returns:
        One line for the user about each thing done.
    """
    lines = await archive.keep(interrupt_lost, archive.store)
    for driver in drivers:
        lines += await driver.reap()
    return lines


def interrupt_lost(store: Store) -> list[str]:
    """Mark the runs of dead processes as interrupted; their evidence stays readable."""
    lines = []
    for run, owner in store.running():
        if owner is None or is_gone(owner):
            _seal(store, run)
            store.interrupt(run, LOST)
            lines.append(f"run {run} was interrupted: its process is no more")
    return lines


def _seal(store: Store, run: str) -> None:
    """Make the job record of what was stored, unless the run came to seal its own."""
    if store.record(run) is not None:
        return
    events = [event for _, event in store.events(run)]
    if not events:
        return
    stored = store.get(run)
    try:
        record = assemble(ticket(stored.spec.scenario), events)
    except OpsDrillError as error:
        log.warning("no job record can be made of what run %s left: %s", run, error)
        return
    store.save_record(run, stored.attempt, record)
