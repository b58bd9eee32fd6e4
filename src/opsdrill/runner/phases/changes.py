"""Changes: which files the agent changed on each host, asked before the rules change any."""

from __future__ import annotations

import re
from collections.abc import Mapping

from opsdrill.errors import HostError
from opsdrill.hosts.command import SHELLS
from opsdrill.hosts.driver import Host
from opsdrill.model.host import ChangedFile, HostFacts
from opsdrill.runner.phases.steps import on_each

_SHELLS = frozenset(path for shell in SHELLS for path in shell.paths)
_LOADED = re.compile(
    r"/etc/ld\.so\.preload|/[\w/.-]*/(ld-linux[\w-]*|ld-musl[\w-]*|libc)\.so[0-9.]*", re.ASCII
)


async def changes(
    hosts: Mapping[str, Host], warnings: list[str]
) -> list[tuple[HostFacts, tuple[ChangedFile, ...] | None]]:
    """The files changed since setup, by host; None where nobody can tell.

    Args:
        warnings: gets a sentence for each host that could not be looked at, and for each whose
            answers may be made up, for what a rule's command is run by was changed.
    """

    async def look(name: str) -> tuple[HostFacts, tuple[ChangedFile, ...] | None]:
        facts = hosts[name].facts
        try:
            changed = await hosts[name].changed()
        except HostError as error:
            warnings.append(f"the changed files of host {name} are not known: {error}")
            return facts, None
        if voices := [file.path for file in changed or () if _speaks(file.path)]:
            what = ", ".join(voices[:3])
            warnings.append(
                f"what host {name} answered to rules may be made up: {what} was changed after setup"
            )
        return facts, changed

    return await on_each(hosts, look)


def _speaks(path: str) -> bool:
    """Whether every command that a host is asked with goes through this file."""
    return path in _SHELLS or _LOADED.fullmatch(path) is not None
