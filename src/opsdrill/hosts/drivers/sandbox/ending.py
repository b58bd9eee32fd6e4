"""The end of the sandbox hosts of one run."""

from __future__ import annotations

import asyncio

from opsdrill.hosts.drivers.sandbox.link import Link
from opsdrill.hosts.drivers.sandbox.messages import Release

_END_SECONDS = 15.0


async def end_hosts(link: Link, run: str, hosts: list[str]) -> None:
    """End hosts and their network, and wait until they are gone. Never raises."""
    try:
        with await link.request(Release(hosts, run)) as exchange:
            async with asyncio.timeout(_END_SECONDS):
                await exchange.receive()
    except (OSError, TimeoutError):
        # Without its fork server no host lives on; what stays of a stuck one is reaped later.
        return
