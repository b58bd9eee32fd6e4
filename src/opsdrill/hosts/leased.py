"""Hosts that answer only as long as their lease holds.

A process that was stopped for a while may go on with its next command before it learns that its
lease ran out; that command must not reach a host that is another run's by now.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol

from opsdrill.errors import HostUnreachable
from opsdrill.hosts.driver import Fleet, Host
from opsdrill.hosts.fleet import WrappedFleet
from opsdrill.hosts.session import Session, SessionEnd, SessionRequest, Stream
from opsdrill.model.host import ChangedFile, Command, HostAnswer, HostFacts


class Grant(Protocol):
    """A lease, as far as a host must know it."""

    @property
    def lost(self) -> str | None:
        """Why the hosts may be somebody else's by now; None while they are this run's."""


class LeasedHost:
    """A host behind its lease (see `Host`)."""

    def __init__(self, host: Host, grant: Grant) -> None:
        self._host = host
        self._grant = grant

    @property
    def facts(self) -> HostFacts:
        return self._host.facts

    async def run(self, command: Command) -> HostAnswer:
        if (lost := self._grant.lost) is None:
            return await self._host.run(command)
        now = datetime.now(UTC)
        return HostAnswer(
            on=self.facts.name,
            run=command.run,
            unreachable=True,
            user=command.user,
            timeout=command.timeout,
            reason=f"the lease of the host was lost: {lost}",
            started_at=now,
            ended_at=now,
        )

    async def open(self, request: SessionRequest) -> LeasedSession:
        self._must_hold()
        return LeasedSession(await self._host.open(request), self._grant)

    async def put(
        self, path: str, content: bytes, *, mode: int | None = 0o644, owner: str | None = "root"
    ) -> None:
        self._must_hold()
        await self._host.put(path, content, mode=mode, owner=owner)

    async def get(self, path: str, *, limit: int = 1024 * 1024) -> bytes:
        self._must_hold()
        return await self._host.get(path, limit=limit)

    async def mark(self) -> None:
        self._must_hold()
        await self._host.mark()

    async def changed(self) -> tuple[ChangedFile, ...] | None:
        return None if self._grant.lost else await self._host.changed()

    def _must_hold(self) -> None:
        if (lost := self._grant.lost) is not None:
            raise HostUnreachable(self.facts.name, f"its lease was lost: {lost}")


class LeasedSession:
    """A session that ends with the lease of its host (see `Session`)."""

    def __init__(self, session: Session, grant: Grant) -> None:
        self._session = session
        self._grant = grant

    async def read(self, stream: Stream, size: int = 65536) -> bytes:
        return await self._session.read(stream, size)

    async def write(self, data: bytes) -> None:
        if await self._holds():
            await self._session.write(data)

    async def write_eof(self) -> None:
        if await self._holds():
            await self._session.write_eof()

    async def resize(self, columns: int, rows: int) -> None:
        if await self._holds():
            await self._session.resize(columns, rows)

    async def signal(self, name: str) -> None:
        if await self._holds():
            await self._session.signal(name)

    async def kill(self) -> int | None:
        return await self._session.kill() if await self._holds() else None

    async def wait(self) -> SessionEnd:
        return await self._session.wait()

    async def close(self) -> None:
        await self._session.close()

    async def _holds(self) -> bool:
        """Nothing more reaches the host once the lease was lost; the session is then closed."""
        if self._grant.lost is None:
            return True
        await self._session.close()
        return False


class LeasedFleet(WrappedFleet[LeasedHost]):
    """The hosts of a run behind their lease (see `Fleet`)."""

    def __init__(self, fleet: Fleet, grant: Grant) -> None:
        super().__init__(fleet, lambda host: LeasedHost(host, grant))
