"""The way to a machine: its shells, started in channels of a connection."""

from __future__ import annotations

import asyncio

from opsdrill.hosts.command import Account
from opsdrill.hosts.drivers.ssh.exchange import CommandExchange, Exchange
from opsdrill.hosts.drivers.ssh.link import Link
from opsdrill.hosts.drivers.ssh.residents import Residents
from opsdrill.hosts.drivers.ssh.session import WINDOW, SshSession
from opsdrill.hosts.login_shell import Login, direct_input
from opsdrill.hosts.look import Look
from opsdrill.hosts.session import Terminal
from opsdrill.hosts.shell_link import ASK_SECONDS, Tell
from opsdrill.hosts.shell_link import Exchange as AnyExchange
from opsdrill.model.host import OUTPUT_LIMIT

_CLOSE_SECONDS = 0.1
"""Seconds from a shell's end after which its channel counts as held."""
_LAST_WORDS_SECONDS = 1.0
"""Seconds in which what was said at the very end comes."""


class Shells:
    """Starts commands and lines on one machine; see `opsdrill.hosts.shell_link.ShellLink`.

    Args:
        link: the connection to it.
        login: how it is spoken to.
        look: what it said about itself.
    """

    def __init__(self, link: Link, login: Login, look: Look) -> None:
        self._link = link
        self._login = login
        self._lines = login.for_lines()
        # Shells that stay are as good as others for root only, with bash and marks.
        plain = login.shell == "bash" and not login.sudo and look.shell == "bash"
        self._stay = plain and look.uid == 0 and look.marks and look.sessions
        self._residents: Residents | None = None

    async def start(self, account: Account, nonce: str, mark: int, text: bytes) -> Exchange:
        residents = self._staying(account)
        if residents is not None and residents.worth():
            return await residents.start(nonce, mark, text)
        entry, before = self._login.for_command(account)
        direct = direct_input(nonce, mark, account, text)
        return await self._link.exchange(entry, nonce, before + direct, kind=CommandExchange)

    async def talk(
        self,
        nonce: str,
        content: bytes,
        *,
        seconds: float = ASK_SECONDS,
        limit: int = OUTPUT_LIMIT,
        urgent: bool = False,
    ) -> Exchange:
        return await self._link.talk(
            self._lines, nonce, content, seconds=seconds, limit=limit, urgent=urgent
        )

    async def session(
        self, line: bytes | None, terminal: Terminal | None, tell: Tell
    ) -> SshSession:
        """As of `ShellLink`; `line` None: the machine's own SFTP server.

        Raises:
            NoConnection: says why.
            Refused: the machine gives no such session.
        """
        return await self._link.channel(
            None if line is None else self._login.around_line(line),
            lambda channels: SshSession(channels, tell, terminal=terminal is not None),
            terminal=terminal,
            window=WINDOW,
        )

    async def no_shell(self, exchange: AnyExchange) -> str | None:
        assert isinstance(exchange, Exchange)
        # Its end may be told before what it wrote.
        seconds = _CLOSE_SECONDS if exchange.err.started else _LAST_WORDS_SECONDS
        try:
            async with asyncio.timeout(seconds):
                await exchange.complete.wait()
        except TimeoutError:
            # Background processes keep its channel open.
            ended = exchange.status is not None and exchange.err.started
            if ended and exchange.carrier is not None and await exchange.carrier.caught_up():
                exchange.finish(whole=True)
        return exchange.no_shell

    def _staying(self, account: Account) -> Residents | None:
        if not self._stay or account.become != "stay":
            return None
        if self._residents is None or self._residents.account != account:
            self._residents = Residents(self._link, account)
            self._link.make_room = self._residents.give_back
        return self._residents
