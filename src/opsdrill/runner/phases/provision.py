"""Provision: the hosts of a run, and what happens to them at its end."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

from opsdrill.hosts.driver import Driver, Fleet, Host
from opsdrill.hosts.leased import LeasedFleet
from opsdrill.model.run import RunSpec
from opsdrill.runner.giving_back import give_back
from opsdrill.runner.journal import Journal
from opsdrill.runner.leases import HeldLease
from opsdrill.runner.masked_hosts import MaskedFleet


@dataclass(frozen=True, slots=True)
class ProvidedHosts:
    """The hosts of a run by name: for the agent as they are, for the phases with answers masked."""

    true: Mapping[str, Host]
    masked: Mapping[str, Host]


async def provision(
    spec: RunSpec,
    driver: Driver,
    journal: Journal,
    given_back: AsyncExitStack,
    leased: HeldLease | None,
) -> ProvidedHosts:
    """Make the hosts, and make sure that they are restored and given back at the end."""
    if not spec.scenario.hosts:
        return ProvidedHosts({}, {})
    fleet: Fleet = await driver.provision(spec.id, spec.scenario.hosts)
    if leased is not None:
        fleet = LeasedFleet(fleet, leased)
    masked = MaskedFleet(fleet, journal.mask)
    given_back.push_async_callback(give_back, driver, masked, journal)
    for host in masked.hosts.values():
        journal.later(journal.store.save_host, spec.id, journal.attempt, host.facts)
    return ProvidedHosts(fleet.hosts, masked.hosts)
