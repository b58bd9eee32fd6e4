"""`ssh HOST COMMAND` inside a command: the host and the command that ran there."""

from __future__ import annotations

from opsdrill.model.job import ToolCall


def over_ssh(call: ToolCall, host: str | None) -> tuple[str | None, ToolCall]:
    """The host that a shell call really worked on, and the call as that host saw it.

    Only a command that does nothing but run another one over ssh is taken apart; anything else
    stays where it was.
    """
    return host, call
