"""The hosts of one run: ended once, whoever asks for it, or each of them behind something."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from opsdrill.hosts.driver import Fleet, Host

H = TypeVar("H", bound=Host)


class EndingFleet(Generic[H]):
    """The hosts of one run. Leaving it as a context gives them back.

    Args:
        hosts: by the names that the run gives them.
        end: gives everything back; called once, and must not raise.
    """

    def __init__(
        self, hosts: Mapping[str, H], end: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        self._hosts = dict(hosts)
        self._end = end
        self._ending: asyncio.Task[None] | None = None

    @property
    def hosts(self) -> Mapping[str, H]:
        return self._hosts

    async def release(self) -> None:
        # Ending is a task of its own: whoever waits for it may be cancelled, it may not.
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end())
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


class WrappedFleet(EndingFleet[H]):
    """A fleet with each of its hosts behind something; releasing it releases the fleet.

    Args:
        fleet: whose hosts they are.
        wrap: puts a host behind it.
    """

    def __init__(self, fleet: Fleet, wrap: Callable[[Host], H]) -> None:
        wrapped = {name: wrap(host) for name, host in fleet.hosts.items()}
        super().__init__(wrapped, fleet.release)
