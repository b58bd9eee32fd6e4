"""Sessions with a host that is spoken to by lines of `hosts.command`."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from opsdrill.errors import HostError, HostUnreachable
from opsdrill.hosts.command import Account, ask_line, kill_line, next_mark, next_nonce
from opsdrill.hosts.look import NoAccount
from opsdrill.hosts.session import Session, SessionRequest, wrong_request
from opsdrill.hosts.session_line import LONGEST_LINE, server_text, session_line, signal_text
from opsdrill.hosts.shell_link import Exchange, NoAnswer, ShellLink

NO_SERVER = "it has no SFTP server: install openssh-sftp-server on it"


class Talk(Protocol):
    """Starts a line of ours and waits for its end, as of `ShellLink.talk`."""

    async def __call__(self, nonce: str, content: bytes, *, urgent: bool = False) -> Exchange: ...


@dataclass(frozen=True, slots=True)
class MarkedProgram:
    """The program of a session, as signals reach it (see `Tell`).

    Args:
        talk: to its host; raises where that does not answer.
        mark: what it and all that it starts carries.
    """

    talk: Talk
    mark: int

    async def __call__(self, *names: str) -> None:
        nonce = next_nonce()
        line = ask_line(nonce, signal_text(self.mark, *names))
        await self.talk(nonce, line.encode(), urgent=True)

    async def kill(self) -> int | None:
        nonce = next_nonce()
        told = await self.talk(nonce, kill_line(nonce, self.mark).encode(), urgent=True)
        left = told.out.text.strip()
        return int(left) if left.isdecimal() else None


async def open_session(
    name: str,
    link: ShellLink,
    account: Callable[[str], Awaitable[Account]],
    request: SessionRequest,
) -> Session:
    """Open a session.

    Args:
        name: of the host.
        link: the way to it.
        account: tells how to become a user there; raises NoAnswer or NoAccount.
        request: what is to be started.

    Raises:
        HostError: it cannot be started; says why.
        HostUnreachable: the host does not answer.
    """
    if (wrong := wrong_request(request)) is not None:
        raise HostError(name, wrong)
    mark = next_mark()
    try:
        who = await account(request.user)
        server = await _server(link) if request.files else None
        if request.files and server is None:
            raise HostError(name, NO_SERVER)
        line = line_for(name, session_line(mark, who, request, server))
        terminal = None if request.files else request.terminal
        return await link.session(line, terminal, MarkedProgram(link.talk, mark))
    except NoAccount as error:
        raise HostError(name, f"the session cannot be started: {error}") from None
    except NoAnswer as error:
        raise HostUnreachable(name, f"does not answer: {error.reason}", hint=error.hint) from None


def line_for(name: str, line: bytes) -> bytes:
    """The same line, if it is not too long for a host.

    Raises:
        HostError: it is.
    """
    if len(line) > LONGEST_LINE:
        raise HostError(name, f"the command is too long for a session: {len(line)} bytes")
    return line


def known_signal(name: str) -> bool:
    """It is the name of a signal, without `SIG`."""
    return f"SIG{name}" in signal.Signals.__members__


async def _server(link: ShellLink) -> str | None:
    nonce = next_nonce()
    told = await link.talk(nonce, ask_line(nonce, server_text()).encode())
    return told.out.text.strip() or None
