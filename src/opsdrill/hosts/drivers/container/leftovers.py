"""Containers and networks of processes that are no more."""

from __future__ import annotations

from opsdrill.hosts.drivers.container.birth import remove_arguments
from opsdrill.hosts.drivers.container.engine import Engine
from opsdrill.hosts.drivers.container.owner import LABEL, Owner

_CONTAINER = '--format={{.Name}} {{index .Config.Labels "opsdrill.owner"}}'
_NETWORK = '--format={{.Name}} {{index .Labels "opsdrill.owner"}}'


async def remove_leftovers(engine: Engine) -> list[str]:
    """Remove what belongs to nobody any more; one line each."""
    found = []
    filtered = f"--filter=label={LABEL}"
    listed = await engine.ask("ps", "--all", "--quiet", "--no-trunc", filtered)
    for name in await _dead(
        engine, listed.out.split(), ("inspect", "--type=container", _CONTAINER)
    ):
        if (await engine.ask(*remove_arguments(engine.kind, name))).good:
            found.append(f"removed the container {name}")
    listed = await engine.ask("network", "ls", "--quiet", filtered)
    for name in await _dead(engine, listed.out.split(), ("network", "inspect", _NETWORK)):
        if (await engine.ask("network", "rm", name)).good:
            found.append(f"removed the network {name}")
    return found


async def _dead(engine: Engine, ids: list[str], inspect: tuple[str, ...]) -> list[str]:
    """The names of those whose owner is gone. One that ends meanwhile is none."""
    if not ids:
        return []
    found = []
    for line in (await engine.ask(*inspect, *ids)).out.splitlines():
        name, _, label = line.partition(" ")
        owner = Owner.parse(label.strip())
        if owner is not None and owner.gone:
            found.append(name.removeprefix("/"))
    return found
