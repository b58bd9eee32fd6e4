"""The end of a run's stay on its machines."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from opsdrill.hosts.drivers.ssh.link import Link
from opsdrill.hosts.shell_host import ShellHost


async def end(hosts: Sequence[ShellHost], links: Mapping[str, Link]) -> None:
    """Kill what still runs and close the connections."""
    await asyncio.gather(*(host.release() for host in hosts))
    await close(links)


async def close(links: Mapping[str, Link]) -> None:
    """Close connections, bastions last."""
    behind = [link for link in links.values() if link.host.via is not None]
    await asyncio.gather(*(link.close() for link in behind))
    await asyncio.gather(*(link.close() for link in links.values()))
