"""What killed processes left behind is found, marked and removed, before anything else is done."""

from __future__ import annotations

from contextlib import AsyncExitStack

from opsdrill.app.wiring import Place, opened
from opsdrill.errors import OpsDrillError
from opsdrill.hosts.driver import DRIVERS, Driver
from opsdrill.model.run import LabChoice
from opsdrill.runner.archive import Archive
from opsdrill.runner.owner import is_gone, this_process
from opsdrill.runner.reap import reap
from opsdrill.store.store import RunFilter, Store

NEVER_BEGAN = "its process ended before it began"


async def recover(place: Place, store: Store) -> list[str]:
    """Mark lost runs as interrupted and remove what is left of their hosts.

    Returns:
        One line for the user about each thing done.
    """
    archive = Archive(store)
    try:
        async with AsyncExitStack() as stack:
            drivers = [await stack.enter_async_context(opened(one)) for one in _used(place)]
            batches = await archive.keep(_lost_batches, store)
            lines = await reap(archive, drivers)
            lines += await archive.keep(_interrupt_planned, store, batches)
            return lines + await archive.keep(_end_leases, store)
    finally:
        archive.close()


def _used(place: Place) -> list[Driver]:
    """The drivers that ever worked for this data folder: any other left nothing."""
    found = []
    for name in DRIVERS.names():
        if not place.was_used(name):
            continue
        try:
            found.append(place.driver(LabChoice(name=name, driver=name)))
        except OpsDrillError:
            continue  # it needs options, so it keeps nothing that it could find without them
    return found


def _end_leases(store: Store) -> list[str]:
    """End the leases that ran out, or whose process is no more."""
    return [
        f"the lease of {', '.join(lease.hosts.values())} ended: run {lease.run} is no more"
        for lease in store.leases(this_process(), is_gone).sweep()
        if lease.held
    ]


def _lost_batches(store: Store) -> set[str]:
    """The batches whose process is no more: a batch is worked off by one process alone."""
    lost = [run for run, owner in store.running() if owner is None or is_gone(owner)]
    return {batch for run in lost if (batch := store.get(run).spec.batch) is not None}


def _interrupt_planned(store: Store, batches: set[str]) -> list[str]:
    """End the runs that never began and that nobody will begin: their process is no more."""
    lines = []
    for run, owner in store.planned():
        if owner is not None and is_gone(owner):
            store.interrupt(run, NEVER_BEGAN)
            lines.append(f"run {run} never began: its process is no more")
    for batch in batches:
        planned = RunFilter(state="planned", batch=batch)
        while rows := store.page(planned, limit=500).rows:
            for row in rows:
                store.interrupt(row.id, NEVER_BEGAN)
                lines.append(f"run {row.id} never began: its process is no more")
    return lines
