"""The sandbox hosts of one run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from opsdrill.hosts.drivers.sandbox.host import SandboxHost
from opsdrill.hosts.drivers.sandbox.link import Link
from opsdrill.hosts.drivers.sandbox.messages import Release

_END_SECONDS = 15.0


class SandboxFleet:
    """The hosts of one run. Leaving it as a context gives them back.

    Args:
        run: the run's id.
        link: the fork server that made them.
        hosts: by name.
        given_back: called once they are gone.
    """

    def __init__(
        self,
        run: str,
        link: Link,
        hosts: Mapping[str, SandboxHost],
        given_back: Callable[[], None],
    ) -> None:
        self._run = run
        self._link = link
        self._hosts = dict(hosts)
        self._given_back = given_back
        self._ending: asyncio.Task[None] | None = None

    @property
    def hosts(self) -> Mapping[str, SandboxHost]:
        return self._hosts

    async def release(self) -> None:
        # Ending them is a task of its own: whoever waits for it may be cancelled, it may not.
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        await end_hosts(self._link, self._run, [host.id for host in self._hosts.values()])
        self._given_back()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.release()


async def end_hosts(link: Link, run: str, hosts: list[str]) -> None:
    """End hosts and their network, and wait until they are gone. Never raises."""
    try:
        with await link.request(Release(hosts, run)) as exchange:
            async with asyncio.timeout(_END_SECONDS):
                await exchange.receive()
    except (OSError, TimeoutError):
        # Without its fork server no host lives on; what stays of a stuck one is reaped later.
        return
