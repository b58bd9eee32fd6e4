"""Where a scenario's hosts come from: the file `lab.yaml`, and the machines in it.

A secret stands here by reference only: where its value is found when it is used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    model_validator,
)
from pydantic_core import PydanticCustomError

from opsdrill.model.fields import Filled, HostName, NotBlank, ShortForm, Written, refuse
from opsdrill.model.lab_mistakes import lab_mistakes
from opsdrill.model.secret import SecretName, SecretReference

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


def _scalar(value: object) -> object:
    if not isinstance(value, (str, int, float)):
        raise PydanticCustomError("scalar", "must be a text, a number, true or false")
    return value


Scalar = Annotated[str | int | float | bool, BeforeValidator(_scalar)]


def _option_tag(value: Any) -> str:
    return "<for one driver>" if isinstance(value, dict) else "<for all>"


Option = Annotated[
    Annotated[Scalar, Tag("<for all>")] | Annotated[dict[str, Scalar], Tag("<for one driver>")],
    Discriminator(_option_tag),
]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]


class Lab(Written):
    """The file `lab.yaml`."""

    driver: NotBlank | None = None
    """Who gives the hosts; left out, the first that can work on this machine."""
    defaults: LabDefaults = LabDefaults()
    options: dict[str, Option] = {}
    """For the driver itself, such as `size: 256M`; below a driver's name for that one only."""
    images: dict[Name, LabImage] = {}
    hosts: dict[HostName, Machine] = {}
    groups: dict[Name, LabGroup] = {}
    pools: dict[Name, LabPool] = {}
    secrets: dict[SecretName, SecretReference] = {}

    login_keys: ClassVar[tuple[str, ...]] = tuple(LoginDefaults.model_fields)
    """What a host, a group and `defaults` may all say."""

    @model_validator(mode="after")
    def _parts_agree(self) -> Lab:
        if wrong := list(lab_mistakes(self)):
            refuse("Lab", wrong)
        return self

    @property
    def digest(self) -> str:
        """SHA-256 in hex over what the file means."""
        return hashlib.sha256(self.model_dump_json(exclude_defaults=True).encode()).hexdigest()

    def login(self, host: str, key: str) -> Any:
        """What holds for a host under one of `login_keys`: its own word, a group's, the lab's."""
        groups = (group for group in self.groups.values() if host in group.hosts)
        for place in (self.hosts[host], *groups, self.defaults):
            value = getattr(place, key)
            # A bastion that is named for all hosts is not reached through itself.
            if value is not None and not (key == "via" and value == host):
                return value
        return None

    def way(self, host: str) -> Iterator[str]:
        """The host, and those that the connection to it goes through, the nearest to it first."""
        name: str | None = host
        while name is not None:
            yield name
            name = self.login(name, "via")

    def machine(self, host: str, password: str | None = None) -> LabHost:
        """How to log in to a host.

        Args:
            host: one of `hosts`.
            password: the value of the secret that its `password` names.
        """
        found = {key: self.login(host, key) for key in self.login_keys if key != "password"}
        given = {key: value for key, value in found.items() if value is not None}
        return LabHost(self.hosts[host].address or host, password=password, **given)

    def user_of(self, host: str) -> str:
        """Who commands run as on a host when no step says otherwise."""
        if host not in self.hosts:
            return self.defaults.user or ROOT
        return ROOT if self.login(host, "sudo") else (self.login(host, "user") or ROOT)

    def options_for(self, driver: str) -> dict[str, str]:
        """The options that hold for a driver, as texts."""
        own = self.options.get(driver)
        plain = {key: value for key, value in self.options.items() if not isinstance(value, dict)}
        merged = {**plain, **(own if isinstance(own, dict) else {})}
        return {key: _text(value) for key, value in merged.items()}

    def images_for(self, driver: str) -> dict[str, str]:
        """What a driver makes of each of the lab's images that it knows."""
        if driver not in LabImage.model_fields:
            return {}
        found = {name: getattr(image, driver) for name, image in self.images.items()}
        return {name: value for name, value in found.items() if value is not None}


def _text(value: str | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
