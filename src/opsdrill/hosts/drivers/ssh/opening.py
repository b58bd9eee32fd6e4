"""A session with a machine is opened."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from opsdrill.errors import HostError, HostUnreachable
from opsdrill.hosts.command import Account, ask_line, next_mark, next_nonce
from opsdrill.hosts.drivers.ssh.reasons import NoConnection, Refused
from opsdrill.hosts.drivers.ssh.session import SshSession
from opsdrill.hosts.drivers.ssh.shells import Shells
from opsdrill.hosts.login_shell import Login
from opsdrill.hosts.look import NoAccount
from opsdrill.hosts.session import SessionRequest, wrong_request
from opsdrill.hosts.session_line import server_text, session_line
from opsdrill.hosts.shell_sessions import NO_SERVER, MarkedProgram, line_for

_CHANNEL_SECONDS = 60.0
"""Seconds after which nobody waits any longer for a channel."""


class Opening:
    """Opens sessions with one machine.

    Args:
        name: of the host.
        shells: the way to it.
        login: how it is spoken to.
    """

    def __init__(self, name: str, shells: Shells, login: Login) -> None:
        self._name = name
        self._shells = shells
        self._login = login

    async def open(
        self, request: SessionRequest, account: Callable[[str], Awaitable[Account]]
    ) -> SshSession:
        """Open a session.

        Args:
            request: what is to be started.
            account: tells how to become a user there; raises NoConnection or NoAccount.

        Raises:
            HostError: it cannot be started; says why.
            HostUnreachable: the machine does not answer.
        """
        if (wrong := wrong_request(request)) is not None:
            raise HostError(self._name, wrong)
        mark = next_mark()
        try:
            who = await account(request.user)
            line = await self._line(mark, who, request)
            terminal = None if request.files else request.terminal
            async with asyncio.timeout(_CHANNEL_SECONDS):
                return await self._shells.session(
                    line, terminal, MarkedProgram(self._shells.talk, mark)
                )
        except (NoAccount, Refused) as error:
            raise HostError(self._name, f"the session cannot be started: {error}") from None
        except TimeoutError:
            reason = f"no channel was free for {_CHANNEL_SECONDS:g} s"
            raise HostError(self._name, reason) from None
        except NoConnection as error:
            reason = f"does not answer: {error.reason}"
            raise HostUnreachable(self._name, reason, hint=error.hint) from None

    async def _line(self, mark: int, who: Account, request: SessionRequest) -> bytes | None:
        """What the session's shell does; None: the machine's own SFTP, for its login."""
        server = None
        if request.files:
            server = await self._server()
            if server is None:
                # It may be built into the SSH server, which serves the login alone.
                if who.become != "stay" or self._login.sudo:
                    raise HostError(self._name, NO_SERVER)
                return None
        return line_for(self._name, session_line(mark, who, request, server))

    async def _server(self) -> str | None:
        nonce = next_nonce()
        line = ask_line(nonce, server_text()).encode()
        told = await self._shells.talk(nonce, line)
        return told.out.text.strip() or None
