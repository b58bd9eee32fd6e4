"""The end of the containers of one run and of their network."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from opsdrill.hosts.drivers.container.birth import FLEET_LABEL, Names, remove_arguments
from opsdrill.hosts.drivers.container.engine import Engine
from opsdrill.hosts.drivers.container.link import ContainerLink

_ROUNDS = 3


async def end_hosts(
    engine: Engine, names: Names, links: Mapping[str, ContainerLink], *, network: bool
) -> None:
    """End the hosts and the network of a run, and wait until they are gone. Never raises."""
    known = [names.container(host) for host in links]
    removed = await engine.ask(*remove_arguments(engine.kind, *known))
    if not removed.good:
        await _remove_all(engine, names)
    if network:
        for _ in range(_ROUNDS):
            if (await engine.ask("network", "rm", names.network)).good:
                break
            await asyncio.sleep(0.2)
    await asyncio.gather(*(link.close() for link in links.values()))


async def _remove_all(engine: Engine, names: Names) -> None:
    """Remove whatever there is of the run: some of it was never made."""
    filtered = f"--filter=label={FLEET_LABEL}={names.fleet}"
    for _ in range(_ROUNDS):
        found = await engine.ask("ps", "--all", "--quiet", filtered)
        if found.good and not found.out.split():
            return
        if found.good:
            await engine.ask(*remove_arguments(engine.kind, *found.out.split()))
        else:
            await asyncio.sleep(0.2)
