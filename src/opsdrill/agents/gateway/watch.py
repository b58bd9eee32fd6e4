"""Watching what passes in one session."""

from __future__ import annotations

from typing import Literal, Protocol

from opsdrill.agents.gateway.given_input import GivenInput
from opsdrill.agents.gateway.kept_output import KeptOutput
from opsdrill.agents.gateway.witness import TOOL, Call, Witness
from opsdrill.hosts.session import Stream
from opsdrill.model.job import Outcome

Lasts = Literal["command", "input", "job"]
"""How long a session may last: a command's time limit, that long after the end of its input, or as
long as the job."""
_OBEYED = "a command was given input that it may have run as commands of its own"


class Malformed(Exception):
    """What a client sent cannot be understood, so nobody could say what it does."""


class Watch(Protocol):
    """Sees the bytes of one session, reports what they do."""

    @property
    def lasts(self) -> Lasts:
        """How long it may last."""

    def begin(self) -> None:
        """It is about to start.

        Raises:
            NotRecorded: it must not.
        """

    async def sent(self, data: bytes) -> bytes:
        """These bytes came from the client; what of them goes to the host.

        Raises:
            NotRecorded: they must not.
            Malformed: likewise; says why.
        """

    async def sent_all(self) -> bytes:
        """No more comes from the client; what was held of it and goes to the host. Raises as
        `sent`."""

    def came(self, stream: Stream, data: bytes) -> bytes:
        """These bytes came from the host; what of them goes to the client.

        Raises:
            NotRecorded: as above.
        """

    def over(self, outcome: Outcome, exit_code: int | None, reason: str | None) -> None:
        """It is over: with this exit status, or for this reason without one."""


class CommandWatch:
    """One command: a shell call with its exit status and its output.

    Args:
        witness: who reports.
        host: the host's name.
        user: who it runs as.
        command: its text.
        keeps: its output is kept: it is no stream of some protocol.
        known, terminal: as of `GivenInput`.
    """

    lasts: Lasts = "command"

    def __init__(
        self,
        witness: Witness,
        host: str,
        user: str,
        command: str,
        *,
        keeps: bool = True,
        known: bytes = b"",
        terminal: bool = False,
    ) -> None:
        self._witness = witness
        self._host = host
        self._user = user
        self._command = command
        self._kept = KeptOutput() if keeps else None
        self._call: Call | None = None
        self._given = GivenInput(command, known, terminal=terminal)

    def begin(self) -> None:
        self._call = self._witness.begin(
            self._host, "shell", TOOL, {"command": self._command, "user": self._user}
        )

    async def sent(self, data: bytes) -> bytes:
        """Input of a command is its own affair, unless it may do what the input says."""
        self._given.add(data)
        self._look(over=False)
        return data

    async def sent_all(self) -> bytes:
        return b""

    def came(self, stream: Stream, data: bytes) -> bytes:
        if self._kept is not None:
            self._kept.add(stream, data)
        return data

    def over(self, outcome: Outcome, exit_code: int | None, reason: str | None) -> None:
        self._look(over=True)
        if self._call is not None:
            output = reason if self._kept is None else self._kept.text(reason)
            self._call.returned(outcome, exit_code=exit_code, output=output)

    def _look(self, *, over: bool) -> None:
        if self._given.may_have_run(over=over):
            self._witness.gap(("executed_commands", "tool_calls"), _OBEYED)
