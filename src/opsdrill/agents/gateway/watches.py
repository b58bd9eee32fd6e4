"""Which watch a session gets, by what was asked for."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import replace

from opsdrill.agents.gateway.copy_watch import (
    RsyncWatch,
    ScpWatch,
    copies,
    receives_rsync,
    receives_scp,
    scp_target,
)
from opsdrill.agents.gateway.sftp_watch import SftpWatch
from opsdrill.agents.gateway.shell_watch import Forbidding, ShellWatch, reads_commands
from opsdrill.agents.gateway.told_lines import Markers, hook
from opsdrill.agents.gateway.visit import Visit
from opsdrill.agents.gateway.watch import CommandWatch, Watch
from opsdrill.hosts.command import quote
from opsdrill.hosts.session import SessionRequest
from opsdrill.model.host import Command

_ASK_SECONDS = 10.0


def watch_for(
    visit: Visit,
    request: SessionRequest,
    text: str | None,
    tell: Callable[[str], Awaitable[None]],
) -> tuple[SessionRequest, Watch]:
    """The watch of a session, and what is to be opened for it.

    Args:
        visit: the client's, to this host.
        request: what it asked for.
        text: a command as it is recorded; None: there is none.
        tell: tells the client why a line was refused.
    """
    witness, host, user = visit.witness, visit.name, request.user
    if request.files:
        return request, SftpWatch(witness, host, user)
    forbidding = Forbidding(visit.refuses, tell) if visit.rules.deny is not None else None
    if text is None:
        return _shell(visit, request, forbidding)
    if reads_commands(text):
        terminal = request.terminal is not None
        return request, ShellWatch(
            witness, host, user, terminal=terminal, command=text, forbidding=forbidding
        )
    if receives_rsync(text):
        return request, RsyncWatch(witness, host, user, text, keeps=False)
    if not copies(text):
        known, terminal = visit.rules.known_input, request.terminal is not None
        return request, CommandWatch(witness, host, user, text, known=known, terminal=terminal)
    if not receives_scp(text):
        return request, CommandWatch(witness, host, user, text, keeps=False)
    target = scp_target(text)

    async def is_folder(path: str) -> bool:
        answer = await visit.host.run(
            Command(run=f"test -d {quote(path)}", user=user, timeout=_ASK_SECONDS)
        )
        return answer.exit_code == 0

    return request, ScpWatch(witness, host, user, text, target=target, is_folder=is_folder)


def _shell(
    visit: Visit, request: SessionRequest, forbidding: Forbidding | None
) -> tuple[SessionRequest, Watch]:
    """A login shell; one with a terminal is asked to tell of its lines, which bash does."""
    terminal, markers = request.terminal is not None, None
    if terminal:
        word = secrets.token_hex(12)
        markers = Markers(word)
        request = replace(request, environment={**request.environment, **hook(word)})
    return request, ShellWatch(
        visit.witness,
        visit.name,
        request.user,
        terminal=terminal,
        markers=markers,
        forbidding=forbidding,
    )
