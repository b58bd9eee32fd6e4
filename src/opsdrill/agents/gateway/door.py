"""The door to one host: lets in the run's key, hands out sessions, and refuses all forwarding."""

# ruff: noqa: ARG002  (signatures of others)
from __future__ import annotations

from dataclasses import dataclass, field

import asyncssh

from opsdrill.agents.gateway import bounds
from opsdrill.agents.gateway.connection import GatewayChannel, GatewayConnection
from opsdrill.agents.gateway.passage import Passage
from opsdrill.agents.gateway.visit import Rules, Visit
from opsdrill.agents.gateway.witness import Witness
from opsdrill.hosts.driver import Host


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
        self._visit: Visit | None = None
        self._own: set[Passage] = set()

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        if isinstance(conn, GatewayConnection):
            house = self._house
            self._connection = conn
            self._visit = Visit(conn, self._name, self._host, house.rules, house.witness)

    def begin_auth(self, username: str) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return not self._house.shut and key.public_data == self._house.key.public_data

    def session_requested(self) -> tuple[GatewayChannel, Passage] | bool:
        connection, visit = self._connection, self._visit
        if connection is None or visit is None or self._house.shut:
            return False
        if len(self._own) >= bounds.CHANNELS or len(self._house.passages) >= bounds.SESSIONS:
            visit.refuse({"request": "session"}, "too many sessions at once")
            return False
        passage = Passage(visit, connection, self._left)
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

    def _left(self, passage: Passage) -> None:
        """A session is over."""
        self._own.discard(passage)
        self._house.passages.discard(passage)

    def _no_forwarding(self, request: str, to: str) -> bool:
        if self._visit is not None:
            self._visit.refuse({"request": request, "to": to}, "nothing is forwarded")
        return False
