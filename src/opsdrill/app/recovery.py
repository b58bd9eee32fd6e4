"""What killed processes left behind is found, marked and removed, before anything else is done."""

from __future__ import annotations

from contextlib import AsyncExitStack

from opsdrill.app.wiring import Place, opened
from opsdrill.errors import OpsDrillError
from opsdrill.hosts.driver import DRIVERS, Driver
from opsdrill.model.run import LabChoice
from opsdrill.runner.archive import Archive
from opsdrill.runner.reap import reap
from opsdrill.store.store import Store


async def recover(place: Place, store: Store) -> list[str]:
    """Mark lost runs as interrupted and remove what is left of their hosts.

    Returns:
        One line for the user about each thing done.
    """
    archive = Archive(store)
    try:
        async with AsyncExitStack() as stack:
            drivers = [await stack.enter_async_context(opened(one)) for one in _used(place)]
            return await reap(archive, drivers)
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
