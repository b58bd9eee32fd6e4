"""One machine, as a run sees it."""

from __future__ import annotations

from opsdrill.hosts.drivers.ssh.link import Link
from opsdrill.hosts.drivers.ssh.opening import Opening
from opsdrill.hosts.drivers.ssh.session import SshSession
from opsdrill.hosts.drivers.ssh.shells import Shells
from opsdrill.hosts.login_shell import Login
from opsdrill.hosts.look import Look
from opsdrill.hosts.session import SessionRequest
from opsdrill.hosts.shell_host import ShellHost
from opsdrill.model.host import HostFacts


class SshHost(ShellHost):
    """A machine while a run has it.

    Args:
        facts: what it is made of.
        link: the connection to it.
        login: how it is spoken to.
        look: what it said about itself.
    """

    def __init__(self, facts: HostFacts, link: Link, login: Login, look: Look) -> None:
        shells = Shells(link, login, look)
        super().__init__(facts, shells, look.uid)
        self._opening = Opening(facts.name, shells, login)

    async def open(self, request: SessionRequest) -> SshSession:
        return await self._opening.open(request, self._account)
