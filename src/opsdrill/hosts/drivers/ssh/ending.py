"""The connections to the machines of one run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from opsdrill.hosts.drivers.ssh.link import Link


async def close(links: Mapping[str, Link]) -> None:
    """Close connections, bastions last."""
    behind = [link for link in links.values() if link.host.via is not None]
    await asyncio.gather(*(link.close() for link in behind))
    await asyncio.gather(*(link.close() for link in links.values()))
