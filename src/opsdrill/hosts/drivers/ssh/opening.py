"""A session with a machine is opened."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from opsdrill.errors import HostError, HostUnreachable
from opsdrill.hosts.command import Account, Login, ask_line, next_mark, next_nonce
from opsdrill.hosts.drivers.ssh.link import Link
from opsdrill.hosts.drivers.ssh.reasons import NoConnection, Refused
from opsdrill.hosts.drivers.ssh.session import WINDOW, SshSession
from opsdrill.hosts.look import NoAccount
from opsdrill.hosts.session import SessionRequest, Terminal, wrong_request
from opsdrill.hosts.session_line import server_text, session_line, signal_text
from opsdrill.hosts.shell_sessions import NO_SERVER, line_for

_CHANNEL_SECONDS = 60.0
"""Seconds after which nobody waits any longer for a channel."""


class Opening:
    """Opens sessions with one machine.

    Args:
        name: of the host.
        link: the connection to it.
        login: how it is spoken to.
    """

    def __init__(self, name: str, link: Link, login: Login) -> None:
        self._name = name
        self._link = link
        self._login = login
        self._lines = login.for_lines()

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
            entry = await self._entry(mark, who, request)
            terminal = None if request.files else request.terminal
            async with asyncio.timeout(_CHANNEL_SECONDS):
                return await self._channel(entry, mark, terminal)
        except (NoAccount, Refused) as error:
            raise HostError(self._name, f"the session cannot be started: {error}") from None
        except TimeoutError:
            reason = f"no channel was free for {_CHANNEL_SECONDS:g} s"
            raise HostError(self._name, reason) from None
        except NoConnection as error:
            reason = f"does not answer: {error.reason}"
            raise HostUnreachable(self._name, reason, hint=error.hint) from None

    async def _entry(self, mark: int, who: Account, request: SessionRequest) -> bytes | None:
        """What stands on the far command line; None: the machine's own SFTP, for its login."""
        server = None
        if request.files:
            server = await self._server()
            if server is None:
                # It may be built into the SSH server, which serves the login alone.
                if who.become != "stay" or self._login.sudo:
                    raise HostError(self._name, NO_SERVER)
                return None
        line = session_line(mark, who, request, server)
        text = line.decode(errors="surrogatepass")
        return line_for(self._name, self._login.around(text).encode(errors="surrogatepass"))

    async def _channel(
        self, entry: bytes | None, mark: int, terminal: Terminal | None
    ) -> SshSession:
        return await self._link.channel(
            entry,
            lambda channels: SshSession(
                channels, partial(self._signal, mark), terminal=terminal is not None
            ),
            terminal=terminal,
            window=WINDOW,
        )

    async def _server(self) -> str | None:
        nonce = next_nonce()
        line = ask_line(nonce, server_text()).encode()
        told = await self._link.talk(self._lines, nonce, line)
        return told.out.text.strip() or None

    async def _signal(self, mark: int, *names: str) -> None:
        """Send signals to a session.

        Raises:
            NoConnection: the machine does not answer.
        """
        nonce = next_nonce()
        line = ask_line(nonce, signal_text(mark, *names)).encode()
        await self._link.talk(self._lines, nonce, line, urgent=True)
