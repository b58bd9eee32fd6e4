"""One client's connection: who is let in, and what it is refused.

The library's own connection grants whatever its owner says; here it is told apart what must never
be granted, and what a client can make it do without end is bounded.
"""

# ruff: noqa: ARG002  (signatures of others)
from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

import asyncssh
from asyncssh.channel import SSHServerChannel
from asyncssh.connection import (
    SSHServerConnection,
    SSHServerConnectionOptions,
)
from asyncssh.constants import MSG_USERAUTH_REQUEST
from asyncssh.logging import SSHLogger
from asyncssh.misc import MaybeAwait
from asyncssh.packet import SSHPacket
from asyncssh.session import SSHServerSession

from opsdrill.agents.gateway import bounds

# A client's bytes stand in the library's messages, and nothing of an agent goes into our logs.
_SILENT = logging.Logger("opsdrill.gateway")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False
_SILENT.disabled = True

_KEX_SECONDS = 0.02


class Requests(Protocol):
    """What a channel asks of the session behind it, beside what the library asks."""

    def command_requested(self, command: bytes) -> bool:
        """A command, as the client gave it."""

    def files_requested(self, subsystem: bytes) -> bool:
        """A subsystem by its name."""

    def variable_requested(self, name: bytes, value: bytes) -> bool:
        """An environment variable."""

    def forwarding_requested(self, what: str) -> None:
        """A display or an agent, which is refused."""


class GatewayConnection(SSHServerConnection):
    """A connection that counts what it is asked for.

    Args:
        options: as the library has them.
        told_lost: called once with this connection when it is over.
    """

    def __init__(
        self,
        options: SSHServerConnectionOptions,
        told_lost: Callable[[GatewayConnection], None],
    ) -> None:
        super().__init__(asyncio.get_running_loop(), options)
        self._logger = SSHLogger(_SILENT)
        self._told_lost = told_lost
        self._tries = 0
        self._room = asyncio.Event()
        self._room.set()

    def connection_lost(self, exc: Exception | None = None) -> None:
        self._room.set()
        self._told_lost(self)
        super().connection_lost(exc)

    @property
    def logged_in(self) -> bool:
        return bool(self._auth_complete)

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    async def room(self) -> None:
        """Wait until the client takes what it was sent, and has no new keys to agree on."""
        await self._room.wait()
        # Until the keys are there the library keeps what it is given, however much it is.
        while not self._kex_complete and self._transport is not None:  # noqa: ASYNC110
            await asyncio.sleep(_KEX_SECONDS)

    def channel(self) -> GatewayChannel:
        """A channel of bytes, without the library's own line editor."""
        return GatewayChannel(
            self, self._loop, True, False, False, 0, 0, None, "strict", bounds.WINDOW, 32768
        )

    def _count_tries(self, kind: int, number: int, packet: SSHPacket) -> MaybeAwait[None]:
        self._tries += 1
        if self._tries > bounds.LOGIN_TRIES:
            raise asyncssh.PermissionDenied("too many attempts to log in")
        return self._process_userauth_request(kind, number, packet)

    _packet_handlers = {  # noqa: RUF012
        **SSHServerConnection._packet_handlers,
        MSG_USERAUTH_REQUEST: _count_tries,
    }


class GatewayChannel(SSHServerChannel[bytes]):
    """A channel whose requests arrive as the client's bytes."""

    @property
    def _asked(self) -> Requests:
        session: SSHServerSession[bytes] = self._session
        return session  # type: ignore[return-value]

    def _process_exec_request(self, packet: SSHPacket) -> bool:
        command = packet.get_string()
        packet.check_end()
        return self._first() and self._asked.command_requested(command)

    def _process_subsystem_request(self, packet: SSHPacket) -> bool:
        subsystem = packet.get_string()
        packet.check_end()
        return self._first() and self._asked.files_requested(subsystem)

    def _process_env_request(self, packet: SSHPacket) -> bool:
        name, value = packet.get_string(), packet.get_string()
        packet.check_end()
        return self._asked.variable_requested(name, value)

    def _process_x11_req_request(self, packet: SSHPacket) -> bool | None:
        self._asked.forwarding_requested("x11")
        return False

    def _process_auth_agent_req_at_openssh_dot_com_request(  # type: ignore[override]
        self, packet: SSHPacket
    ) -> bool:
        self._asked.forwarding_requested("auth-agent")
        return False

    def _first(self) -> bool:
        """A channel runs one thing."""
        first = not self._session_started
        self._session_started = True
        return first
