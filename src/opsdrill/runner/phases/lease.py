"""Lease: a lasting host is this run's alone, before anything touches it."""

from __future__ import annotations

from contextlib import AsyncExitStack

from opsdrill.hosts.driver import Driver
from opsdrill.hosts.lease import claim_for
from opsdrill.model.run import RunSpec
from opsdrill.runner.engine import RunEvent
from opsdrill.runner.leases import HeldLease
from opsdrill.runner.tools import RunTools


async def lease(
    spec: RunSpec, attempt: int, tools: RunTools, driver: Driver, given_back: AsyncExitStack
) -> HeldLease | None:
    """Wait until the run's hosts are free and keep them until `given_back` is left.

    Returns:
        None where hosts are made for the run, so that nobody else can have them.
    """
    if driver.throw_away or tools.leases is None or not spec.scenario.hosts:
        return None
    names = spec.scenario.host_names
    claim = claim_for(spec.id, attempt, driver.name, names, spec.lab.lab)
    mask = tools.mask(spec.lab)
    held = tools.leases.hold(
        claim, lambda line: tools.publish(RunEvent(spec.id, step=mask.text(line)))
    )
    return await given_back.enter_async_context(held)
