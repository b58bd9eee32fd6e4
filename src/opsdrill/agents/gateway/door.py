"""The door to one host: lets in the run's key, hands out sessions, and refuses all forwarding."""

# ruff: noqa: ARG002  (signatures of others)
from __future__ import annotations

from dataclasses import dataclass, field

import asyncssh

from opsdrill.agents.deny import DenyList
from opsdrill.agents.gateway import bounds
from opsdrill.agents.gateway.connection import GatewayChannel, GatewayConnection
from opsdrill.agents.gateway.passage import Passage
from opsdrill.agents.gateway.witness import TOOL, Witness
from opsdrill.errors import OpsDrillError
from opsdrill.hosts.driver import Host


@dataclass(frozen=True, slots=True)
class Rules:
    """What binds an agent's commands, and what is known of it.

    Args:
        deny: refuses commands; None: none is forbidden.
        command_seconds: the time limit of a command; None: there is none.
        known_input: as of `GivenInput`.
    """

    deny: DenyList | None = None
    command_seconds: float | None = None
    known_input: bytes = b""


@dataclass(slots=True)
class House:
    """What the doors of one gateway share.

    Attributes:
        key: the one key that opens them.
        passages: every session under way.
        rules: what binds commands.
        shut: the gateway is closed.
    """

    key: asyncssh.SSHKey
    witness: Witness
    passages: set[Passage] = field(default_factory=set)
    rules: Rules = field(default_factory=Rules)
    shut: bool = False


class Door(asyncssh.SSHServer):
    """What the library asks about one connection.

    Args:
        house: of the gateway.
        name: of the host behind this door.
        host: that host.
    """

    def __init__(self, house: House, name: str, host: Host) -> None:
        self._house = house
        self._name = name
        self._host = host
        self._connection: GatewayConnection | None = None
        self._own: set[Passage] = set()
        self._refusals = 0

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        if isinstance(conn, GatewayConnection):
            self._connection = conn

    def begin_auth(self, username: str) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return not self._house.shut and key.public_data == self._house.key.public_data

    def session_requested(self) -> tuple[GatewayChannel, Passage] | bool:
        connection = self._connection
        if connection is None or self._house.shut:
            return False
        if len(self._own) >= bounds.CHANNELS or len(self._house.passages) >= bounds.SESSIONS:
            self.refuse({"request": "session"}, "too many sessions at once")
            return False
        passage = Passage(self, connection)
        self._own.add(passage)
        self._house.passages.add(passage)
        return connection.channel(), passage

    def connection_requested(
        self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
    ) -> bool:
        return self._no_forwarding("direct-tcpip", f"{dest_host}:{dest_port}")

    def server_requested(self, listen_host: str, listen_port: int) -> bool:
        return self._no_forwarding("tcpip-forward", f"{listen_host}:{listen_port}")

    def unix_connection_requested(self, dest_path: str) -> bool:
        return self._no_forwarding("direct-streamlocal", dest_path)

    def unix_server_requested(self, listen_path: str) -> bool:
        return self._no_forwarding("streamlocal-forward", listen_path)

    def tun_requested(self, unit: int | None) -> bool:
        return self._no_forwarding("tun", str(unit))

    def tap_requested(self, unit: int | None) -> bool:
        return self._no_forwarding("tap", str(unit))

    @property
    def name(self) -> str:
        """The host's name."""
        return self._name

    @property
    def host(self) -> Host:
        return self._host

    @property
    def rules(self) -> Rules:
        return self._house.rules

    async def refuses(self, command: str) -> str | None:
        """Why a command may not run, or None.

        Raises:
            NotRecorded: nobody can say that any more; the gateway's fault says why.
        """
        if self._house.rules.deny is None:
            return None
        try:
            return await self._house.rules.deny.refuses(command)
        except OpsDrillError as error:
            raise self._house.witness.failed(error) from error

    @property
    def witness(self) -> Witness:
        return self._house.witness

    @property
    def user(self) -> str:
        """Who the client logged in as."""
        found = self._connection.get_extra_info("username", "") if self._connection else ""
        return str(found)

    def left(self, passage: Passage) -> None:
        """A session is over."""
        self._own.discard(passage)
        self._house.passages.discard(passage)

    def refuse(self, arguments: dict[str, str], why: str) -> None:
        """Record a request that is no command and is refused."""
        if self.may_refuse():
            told = {**arguments, "user": self.user}
            self._house.witness.refuse(self._name, "other", TOOL, told, why)

    def may_refuse(self) -> bool:
        """Whether one more refusal is recorded; a client that asks on and on is cut off."""
        self._refusals += 1
        if self._refusals == bounds.REFUSALS + 1 and self._connection is not None:
            self._connection.disconnect(
                asyncssh.DISC_BY_APPLICATION, "too many requests were refused"
            )
        return self._refusals <= bounds.REFUSALS

    def _no_forwarding(self, request: str, to: str) -> bool:
        self.refuse({"request": request, "to": to}, "nothing is forwarded")
        return False
