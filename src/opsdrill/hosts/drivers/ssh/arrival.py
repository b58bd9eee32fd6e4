"""The first words with a machine: how to be understood there, and what it is."""

from __future__ import annotations

from dataclasses import dataclass

from opsdrill.hosts.command import BOOT, ask_line, next_mark, next_nonce, quote
from opsdrill.hosts.drivers.ssh.link import Link
from opsdrill.hosts.drivers.ssh.look import (
    PACKAGES,
    Look,
    look_text,
    packages_digest,
    parse_look,
)
from opsdrill.hosts.drivers.ssh.reasons import NoConnection

_PACKAGE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Arrival:
    """How to be understood on a machine, and what it says about itself.

    Attributes:
        entry: what stands on the far command line.
        look: what it says.
    """

    entry: str
    look: Look


async def arrive(link: Link) -> Arrival:
    """Log in and look around.

    Raises:
        NoConnection: says why.
    """
    in_sh = f"sh -c {quote(BOOT)}"
    if link.host.sudo:
        try:
            return await _look(link, f"exec sudo -n {in_sh}")
        except NoConnection as error:
            raise _sudo_refused(link, error) from None
    try:
        arrival = await _look(link, BOOT)
    except NoConnection as error:
        # The login shell may be one that does not understand us, which then said something.
        if error.passing:
            raise
        return await _look(link, f"exec {in_sh}")
    return await _look(link, f"exec {in_sh}") if arrival.look.foreign else arrival


async def packages(link: Link, entry: str) -> str | None:
    """The digest of the machine's packages; None where it cannot tell.

    Raises:
        NoConnection: says why.
    """
    nonce = next_nonce()
    asked = await link.talk(
        entry, nonce, ask_line(nonce, PACKAGES).encode(), seconds=60.0, limit=_PACKAGE_BYTES
    )
    return packages_digest(asked.out.text) if asked.out.full_size is None else None


async def _look(link: Link, entry: str) -> Arrival:
    nonce = next_nonce()
    asked = await link.talk(entry, nonce, ask_line(nonce, look_text(next_mark())).encode())
    look = parse_look(asked.out.text)
    if look is None:
        raise NoConnection(f"{link.host.address} does not say who logged in", passing=False)
    return Arrival(entry, look)


def _sudo_refused(link: Link, error: NoConnection) -> NoConnection:
    if "sudo" not in error.reason:
        return error
    user = link.host.user
    return NoConnection(
        f"{user} may not become root on {link.host.address}: {error.reason}",
        passing=False,
        hint=f"allow it there without a password: `{user} ALL=(ALL) NOPASSWD: ALL` in sudoers",
    )
