"""Where a scenario's hosts come from: the file `lab.yaml`, and the machines in it.

A secret stands here by reference only: where its value is found when it is used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from pydantic import (
    BeforeValidator,
    Discriminator,
    StringConstraints,
    Tag,
    model_validator,
)
from pydantic_core import PydanticCustomError

from opsdrill.model.fields import HostName, NotBlank, Written, refuse
from opsdrill.model.lab_mistakes import lab_mistakes
from opsdrill.model.machine import (
    ROOT,
    LabDefaults,
    LabGroup,
    LabHost,
    LabImage,
    LabMachine,
    LabPool,
    LoginDefaults,
    Machine,
)
from opsdrill.model.secret import SecretName, SecretReference

__all__ = ["ROOT", "Lab", "LabHost", "LabMachine", "LoginDefaults"]


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
