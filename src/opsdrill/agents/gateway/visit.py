"""A client's visit to one host: what its sessions ask of the way in, and what is refused it."""

from __future__ import annotations

from dataclasses import dataclass

import asyncssh

from opsdrill.agents.deny import DenyList
from opsdrill.agents.gateway import bounds
from opsdrill.agents.gateway.connection import GatewayConnection
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


class Visit:
    """One connection of a client, as its sessions see it.

    Args:
        connection: the client's.
        name: of the host it came for.
        host: that host.
        rules: what binds its commands.
        witness: records what it does.
    """

    def __init__(
        self,
        connection: GatewayConnection,
        name: str,
        host: Host,
        rules: Rules,
        witness: Witness,
    ) -> None:
        self._connection = connection
        self.name = name
        self.host = host
        self.rules = rules
        self.witness = witness
        self._refusals = 0

    @property
    def user(self) -> str:
        """Who the client logged in as."""
        return str(self._connection.get_extra_info("username", ""))

    async def refuses(self, command: str) -> str | None:
        """Why a command may not run, or None.

        Raises:
            NotRecorded: nobody can say that any more; the gateway's fault says why.
        """
        if self.rules.deny is None:
            return None
        try:
            return await self.rules.deny.refuses(command)
        except OpsDrillError as error:
            raise self.witness.failed(error) from error

    def refuse(self, arguments: dict[str, str], why: str) -> None:
        """Record a request that is no command and is refused."""
        if self.may_refuse():
            told = {**arguments, "user": self.user}
            self.witness.refuse(self.name, "other", TOOL, told, why)

    def may_refuse(self) -> bool:
        """Whether one more refusal is recorded; a client that asks on and on is cut off."""
        self._refusals += 1
        if self._refusals == bounds.REFUSALS + 1:
            self._connection.disconnect(
                asyncssh.DISC_BY_APPLICATION, "too many requests were refused"
            )
        return self._refusals <= bounds.REFUSALS
