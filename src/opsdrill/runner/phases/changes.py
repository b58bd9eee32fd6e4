"""Changes: which files the agent changed on each host, asked before the rules change any."""

from __future__ import annotations

from collections.abc import Mapping

from opsdrill.errors import HostError
from opsdrill.hosts.driver import Host
from opsdrill.model.host import ChangedFile, HostFacts
from opsdrill.runner.phases.steps import on_each


async def changes(
    hosts: Mapping[str, Host], warnings: list[str]
) -> list[tuple[HostFacts, tuple[ChangedFile, ...] | None]]:
    """The files changed since setup, by host; None where nobody can tell.

    Args:
        warnings: gets a sentence for each host that could not be looked at.
    """

    async def look(name: str) -> tuple[HostFacts, tuple[ChangedFile, ...] | None]:
        facts = hosts[name].facts
        try:
            return facts, await hosts[name].changed()
        except HostError as error:
            warnings.append(f"the changed files of host {name} are not known: {error}")
            return facts, None

    return await on_each(hosts, look)
