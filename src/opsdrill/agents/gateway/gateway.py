"""The gateway of one run: a listening port for each host, the run's keys, and what was seen."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import asyncssh

from opsdrill.agents.deny import DenyList
from opsdrill.agents.gateway import bounds
from opsdrill.agents.gateway.connection import GatewayConnection
from opsdrill.agents.gateway.door import Door, House
from opsdrill.agents.gateway.visit import Rules
from opsdrill.agents.gateway.witness import Witness
from opsdrill.agents.task import Reports
from opsdrill.errors import OpsDrillError
from opsdrill.hosts.driver import Host
from opsdrill.model.job import Coverage, TaskStatus

ADDRESS = "127.0.0.1"


class Gateway:
    """An SSH server in front of a run's hosts, open from `async with` to `close`.

    Every command and every file written through it is reported to `reports` before it reaches the
    host, in one task for each host that is touched; the job must have been reported before.

    Args:
        hosts: the hosts by name; each gets a port of its own on the loopback address.
        reports: where events go.
        agent: how the tasks call the agent.
        users: who is meant on a host where the client names nobody, if that is not root.
        deny: refuses commands before they run.
        command_seconds: when a command is killed with all that it started.
        known_input: a text that may be a command's input without being a gap in the record: the
            ticket, where `ssh` finds it as its standard input.
    """

    def __init__(
        self,
        hosts: Mapping[str, Host],
        reports: Reports,
        *,
        agent: str | None = None,
        users: Mapping[str, str] | None = None,
        deny: DenyList | None = None,
        command_seconds: float | None = None,
        known_input: bytes = b"",
    ) -> None:
        self._hosts = dict(hosts)
        self._users = dict(users or {})
        self._witness = Witness(reports, agent)
        self._client_key = asyncssh.generate_private_key("ssh-ed25519")
        self._host_key = asyncssh.generate_private_key("ssh-ed25519")
        rules = Rules(deny, command_seconds, known_input)
        self._house = House(self._client_key.convert_to_public(), self._witness, rules=rules)
        self._servers: dict[str, asyncio.Server] = {}
        self._connections: set[GatewayConnection] = set()
        self._strangers: list[GatewayConnection] = []
        self._idle = asyncio.Event()
        self._idle.set()

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        try:
            for name, host in self._hosts.items():
                options = self._options(name, host)
                self._servers[name] = await loop.create_server(
                    partial(self._protocol, options), ADDRESS, 0, backlog=bounds.CONNECTIONS
                )
        except BaseException:
            await self.close("failed")
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        cancelled = isinstance(error, asyncio.CancelledError)
        await self.close("completed" if error is None else "cancelled" if cancelled else "failed")

    @property
    def ports(self) -> dict[str, int]:
        """Where each host listens, on the loopback address."""
        return {name: server.sockets[0].getsockname()[1] for name, server in self._servers.items()}

    @property
    def touched(self) -> tuple[str, ...]:
        """The hosts that were touched; each is the id of its task as well."""
        return self._witness.touched

    @property
    def fault(self) -> OpsDrillError | None:
        """Why nothing was passed on any more: an event could not be kept. None: all were."""
        return self._witness.fault

    def coverage(self, coverage: Coverage) -> Coverage:
        """What a record covers, made worse by what could not be told here."""
        return self._witness.coverage(coverage)

    @property
    def private_key(self) -> str:
        """The run's key, as OpenSSH keeps one in a file."""
        return self._client_key.export_private_key("openssh").decode()

    def ssh_config(self, folder: Path, *, seen_as: Path | None = None) -> str:
        """Write what `ssh` needs to reach the hosts by name, readable by this user alone.

        The files are `config`, `known_hosts` and `id_ed25519`; the gateway must be open.

        Args:
            folder: where they are written.
            seen_as: the folder's name for the agent, if that is another.

        Returns:
            The text of `config`.
        """
        seen = seen_as or folder
        public = self._host_key.export_public_key("openssh").decode().split()
        pinned = "".join(
            f"[{ADDRESS}]:{port} {public[0]} {public[1]}\n" for port in self.ports.values()
        )
        text = "".join(self._entry(name, port, seen) for name, port in self.ports.items())
        _write(folder / "id_ed25519", self.private_key)
        _write(folder / "known_hosts", pinned)
        _write(folder / "config", text)
        return text

    async def close(self, status: TaskStatus = "completed", stop_reason: str | None = None) -> None:
        """End every session and connection, then report the tasks as ended. Repeatable."""
        self._house.shut = True
        for server in self._servers.values():
            server.close()
        if self._house.passages:
            await asyncio.gather(*(passage.cut() for passage in tuple(self._house.passages)))
        for connection in tuple(self._connections):
            connection.abort()
        await self._idle.wait()
        self._witness.end(status, stop_reason)

    def _options(self, name: str, host: Host) -> asyncssh.SSHServerConnectionOptions:
        return asyncssh.SSHServerConnectionOptions(
            server_factory=partial(Door, self._house, name, host),
            server_host_keys=[self._host_key],
            server_version="OpsDrill",
            config=None,
            password_auth=False,
            kbdint_auth=False,
            host_based_auth=False,
            gss_host=None,
            public_key_auth=True,
            agent_forwarding=False,
            x11_forwarding=False,
            line_editor=False,
            compression_algs=["none"],
            login_timeout=bounds.LOGIN_SECONDS,
            rekey_bytes=bounds.REKEY_BYTES,
            encoding=None,
        )

    def _protocol(self, options: asyncssh.SSHServerConnectionOptions) -> asyncio.BaseProtocol:
        if self._house.shut or len(self._connections) >= bounds.CONNECTIONS:
            return _Turned()
        # Whoever of this machine connects and says nothing must not keep the agent out.
        self._strangers = [one for one in self._strangers if not one.logged_in]
        while len(self._strangers) >= bounds.STRANGERS:
            self._strangers.pop(0).abort()
        connection = GatewayConnection(options, self._lost)
        self._connections.add(connection)
        self._strangers.append(connection)
        self._idle.clear()
        return connection

    def _lost(self, connection: GatewayConnection) -> None:
        self._connections.discard(connection)
        with suppress(ValueError):
            self._strangers.remove(connection)
        if not self._connections:
            self._idle.set()

    def _entry(self, name: str, port: int, folder: Path) -> str:
        return (
            "\n    ".join(
                (
                    f"Host {name}",
                    f"HostName {ADDRESS}",
                    f"Port {port}",
                    f"User {self._users.get(name, 'root')}",
                    f'IdentityFile "{folder}/id_ed25519"',
                    "IdentitiesOnly yes",
                    "IdentityAgent none",
                    f'UserKnownHostsFile "{folder}/known_hosts"',
                    "GlobalKnownHostsFile /dev/null",
                    "StrictHostKeyChecking yes",
                    "UpdateHostKeys no",
                    "BatchMode yes",
                    "ControlMaster no",
                )
            )
            + "\n\n"
        )


class _Turned(asyncio.Protocol):
    """One connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


def _write(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
