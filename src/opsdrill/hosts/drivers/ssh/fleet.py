"""The machines of one run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from opsdrill.hosts.drivers.ssh.host import SshHost
from opsdrill.hosts.drivers.ssh.link import Link


class SshFleet:
    """The machines of one run. Leaving it as a context closes the connections.

    Args:
        hosts: by the names that the run gives them.
        links: their connections by machine, those of bastions among them.
    """

    def __init__(self, hosts: Mapping[str, SshHost], links: Mapping[str, Link]) -> None:
        self._hosts = dict(hosts)
        self._links = dict(links)
        self._ending: asyncio.Task[None] | None = None

    @property
    def hosts(self) -> Mapping[str, SshHost]:
        return self._hosts

    async def release(self) -> None:
        # Ending is a task of its own: whoever waits for it may be cancelled, it may not.
        if self._ending is None:
            self._ending = asyncio.ensure_future(close(self._links))
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


async def close(links: Mapping[str, Link]) -> None:
    """Close connections, bastions last."""
    behind = [link for link in links.values() if link.host.via is not None]
    await asyncio.gather(*(link.close() for link in behind))
    await asyncio.gather(*(link.close() for link in links.values()))
