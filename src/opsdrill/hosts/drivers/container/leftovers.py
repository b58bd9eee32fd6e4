"""Containers and networks of processes that are no more."""

from __future__ import annotations

import hashlib
from pathlib import Path

from opsdrill.hosts.drivers.container.birth import remove_arguments
from opsdrill.hosts.drivers.container.engine import Engine
from opsdrill.hosts.drivers.container.owner import LABEL, Owner

_CONTAINER = '--format={{.Name}} {{index .Config.Labels "opsdrill.owner"}}'
_NETWORK = '--format={{.Name}} {{index .Labels "opsdrill.owner"}}'


_USED = "engines"


def remember(state: Path, engine: Engine) -> None:
    """Note that hosts are made by this engine, so that a later process asks it for leftovers.

    Args:
        state: the driver's folder.
    """
    folder = state / _USED
    folder.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(engine.program.encode()).hexdigest()[:16]
    (folder / name).write_text(engine.program, encoding="utf-8")


def remembered(state: Path) -> list[str]:
    """The clients of all engines that ever made hosts."""
    programs = [path.read_text(encoding="utf-8") for path in sorted((state / _USED).glob("*"))]
    return [program for program in programs if program]


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
