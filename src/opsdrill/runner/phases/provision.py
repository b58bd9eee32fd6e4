"""Provision: the hosts of a run, and what happens to them at its end."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack

from opsdrill.hosts.driver import Driver, Fleet, Host
from opsdrill.hosts.leased import LeasedFleet
from opsdrill.model.run import RunSpec
from opsdrill.runner.giving_back import give_back
from opsdrill.runner.journal import Journal
from opsdrill.runner.leases import HeldLease


async def provision(
    spec: RunSpec,
    driver: Driver,
    journal: Journal,
    given_back: AsyncExitStack,
    leased: HeldLease | None,
) -> Mapping[str, Host]:
    """Make the hosts, and make sure that they are restored and given back at the end."""
    if not spec.scenario.hosts:
        return {}
    fleet: Fleet = await driver.provision(spec.id, spec.scenario.hosts)
    if leased is not None:
        fleet = LeasedFleet(fleet, leased)
    given_back.push_async_callback(give_back, driver, fleet, journal)
    for host in fleet.hosts.values():
        journal.later(journal.store.save_host, spec.id, journal.attempt, host.facts)
    return fleet.hosts
