"""The machines of a lab and how to log in to them: the parts of the file `lab.yaml`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from opsdrill.model.fields import Filled, HostName, NotBlank, ShortForm, Written
from opsdrill.model.secret import SecretName

ROOT = "root"


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


def _address(value: str) -> str:
    if "@" in value:
        raise PydanticCustomError("address", "must be without a user; that one goes under `user`")
    plain = all(part.isalnum() or part in ".:-_%" for part in value)
    if not value.isascii() or not plain or not (value[0].isalnum() or value[0] == ":"):
        raise PydanticCustomError("address", "must be a host name or an IP address, without a port")
    if value.count(":") == 1:
        raise PydanticCustomError("address", "must be without a port; that one goes under `port`")
    return value


def _login(value: str) -> str:
    if value.startswith("-") or not value.isprintable() or any(c in " :/@" for c in value):
        raise PydanticCustomError("login", "must be the name of a user")
    return value


Address = Annotated[NotBlank, Field(max_length=253), AfterValidator(_address)]
Login = Annotated[NotBlank, Field(max_length=64), AfterValidator(_login)]


class LoginDefaults(Written):
    """How to log in to a machine, where it does not say so itself."""

    user: Login | None = None
    """Who logs in, and who commands run as when no step says otherwise; root with `sudo`."""
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Where the SSH server listens; 22."""
    key: NotBlank | None = None
    """The path of a private key."""
    password: SecretName | None = None
    """A name from `secrets`: for the login, and for a key that is locked."""
    known_host: NotBlank | None = None
    """The host's public key as one line, or the path of a file with it."""
    via: HostName | None = None
    """Another host of the lab that the connection goes through."""
    sudo: bool | None = None
    """The login user becomes root by `sudo -n`."""


class LabDefaults(LoginDefaults):
    """What holds for every host of the lab."""

    image: NotBlank | None = None
    """A name from `images`, for hosts whose scenario names none."""


class LabMachine(LoginDefaults):
    """A machine as the file says it."""

    address: Address | None = None
    """A name or an IP address; the host's own name when left out."""


def _machine(value: object) -> object:
    return {"address": value} if isinstance(value, str) else value


Machine = Annotated[LabMachine, BeforeValidator(_machine), ShortForm(({"type": "string"},))]


class LabGroup(LoginDefaults):
    """Hosts that are logged in to in the same way."""

    hosts: Filled[HostName]


class LabImage(Written):
    """What each driver makes of one name."""

    sandbox: NotBlank | None = None
    """A path, or the name of a tree that was built."""
    container: NotBlank | None = None
    """An image of the container engine, like `debian:12`."""


class LabPool(Written):
    """Hosts that only so many runs may hold some of at the same time."""

    hosts: Filled[HostName]
    size: Annotated[int, Field(ge=1)]
