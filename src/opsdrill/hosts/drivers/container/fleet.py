"""The containers of one run and their network."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from opsdrill.hosts.drivers.container.birth import FLEET_LABEL, Names, remove_arguments
from opsdrill.hosts.drivers.container.engine import Engine
from opsdrill.hosts.drivers.container.host import ContainerHost
from opsdrill.hosts.drivers.container.link import ContainerLink

_ROUNDS = 3


class ContainerFleet:
    """The hosts of one run. Leaving it as a context gives them back.

    Args:
        engine: whose containers they are.
        names: what its parts are called.
        hosts: by name.
        links: the ways to them.
        network: they have one.
    """

    def __init__(
        self,
        engine: Engine,
        names: Names,
        hosts: Mapping[str, ContainerHost],
        links: Mapping[str, ContainerLink],
        *,
        network: bool,
    ) -> None:
        self._engine = engine
        self._names = names
        self._hosts = dict(hosts)
        self._links = links
        self._network = network
        self._ending: asyncio.Task[None] | None = None

    @property
    def hosts(self) -> Mapping[str, ContainerHost]:
        return self._hosts

    async def release(self) -> None:
        # Ending them is a task of its own: whoever waits for it may be cancelled, it may not.
        if self._ending is None:
            self._ending = asyncio.ensure_future(
                end_hosts(self._engine, self._names, self._links, network=self._network)
            )
        await asyncio.shield(self._ending)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.release()


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
