"""Giving hosts back: restored if they last, released in any case."""

from __future__ import annotations

import asyncio

from opsdrill.hosts.driver import Driver, Fleet
from opsdrill.runner.journal import Journal
from opsdrill.runner.phases.restore import restore


async def give_back(driver: Driver, fleet: Fleet, journal: Journal) -> None:
    """Restore the hosts of a run and release them, also when the run is being cancelled.

    Cancelled itself, it breaks off the restoring and still asks for the release.
    """
    # Tasks of their own: in one that was cancelled already, a time-out inside a driver would look
    # like one more cancellation (early Pythons 3.11, see asyncio.timeout). A task that is cancelled
    # before its first step does nothing at all, so the release must not stand inside the first,
    # and is shielded.
    try:
        await asyncio.create_task(_restore(driver, fleet, journal))
    finally:
        await asyncio.shield(asyncio.create_task(fleet.release()))


async def _restore(driver: Driver, fleet: Fleet, journal: Journal) -> None:
    scenario = journal.spec.scenario
    async with journal.phase("restore") as notes:
        if driver.throw_away:
            notes.skipped = "the hosts are thrown away"
        elif not scenario.restore:
            notes.skipped = "the scenario has no restore steps"
        else:
            journal.warnings += await restore(scenario, fleet.hosts, notes.answers)
