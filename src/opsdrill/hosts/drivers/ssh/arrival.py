"""The first words with a machine: how to be understood there, and what it is."""

from __future__ import annotations

from dataclasses import dataclass

from opsdrill.hosts.command import ask_line, next_mark, next_nonce
from opsdrill.hosts.drivers.ssh.link import Link
from opsdrill.hosts.drivers.ssh.reasons import NoConnection
from opsdrill.hosts.login_shell import Login
from opsdrill.hosts.look import (
    PACKAGES,
    Look,
    look_text,
    packages_digest,
    parse_look,
)

_PACKAGE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Arrival:
    """How to be understood on a machine, and what it says about itself.

    Attributes:
        login: how it is spoken to.
        look: what it says.
    """

    login: Login
    look: Look


async def arrive(link: Link) -> Arrival:
    """Log in and look around.

    Raises:
        NoConnection: says why.
    """
    if link.host.sudo:
        login = Login(sudo=True)
        try:
            return Arrival(login, await _look(link, login))
        except NoConnection as error:
            raise _sudo_refused(link, error) from None
    try:
        look = await _look(link, Login("posix"))
    except NoConnection as error:
        # The login shell may be one that does not understand us, which then said something.
        if error.passing:
            raise
        login = Login("other")
        return Arrival(login, await _look(link, login))
    return Arrival(Login(look.login), look)


async def packages(link: Link, login: Login) -> str | None:
    """The digest of the machine's packages; None where it cannot tell.

    Raises:
        NoConnection: says why.
    """
    nonce = next_nonce()
    asked = await link.talk(
        login.for_lines(),
        nonce,
        ask_line(nonce, PACKAGES).encode(),
        seconds=60.0,
        limit=_PACKAGE_BYTES,
    )
    return packages_digest(asked.out.text) if asked.out.full_size is None else None


async def _look(link: Link, login: Login) -> Look:
    nonce = next_nonce()
    line = ask_line(nonce, look_text(next_mark())).encode()
    asked = await link.talk(login.for_lines(), nonce, line)
    look = parse_look(asked.out.text)
    if look is None:
        raise NoConnection(f"{link.host.address} does not say who logged in", passing=False)
    return look


def _sudo_refused(link: Link, error: NoConnection) -> NoConnection:
    if "sudo" not in error.reason:
        return error
    user = link.host.user
    return NoConnection(
        f"{user} may not become root on {link.host.address}: {error.reason}",
        passing=False,
        hint=f"allow it there without a password: `{user} ALL=(ALL) NOPASSWD: ALL` in sudoers",
    )
