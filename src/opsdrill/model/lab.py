"""Where a scenario's hosts come from."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LabHost:
    """A machine that exists, and how to log in to it.

    Args:
        address: a name or an address that this machine, or the host in `via`, can reach.
        port: where its SSH server listens.
        user: who logs in.
        key: path of a private key; without it the user's agent and usual keys are tried.
        password: for the login, and for a key that is locked; a secret, never shown.
        known_host: the host's public key as one line, or the path of a file with it; without it
            the user's `known_hosts` decides.
        via: the name of another host of the lab that the connection goes through.
        sudo: the login user becomes root by `sudo -n`.
    """

    address: str
    port: int = 22
    user: str = "root"
    key: str | None = None
    password: str | None = field(default=None, repr=False)
    known_host: str | None = None
    via: str | None = None
    sudo: bool = False
