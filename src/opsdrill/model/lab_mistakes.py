"""Every place of a lab that names another part of it: that part must be there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol

from pydantic_core import InitErrorDetails

from opsdrill.model.fields import refused
from opsdrill.model.machine import (
    LabDefaults,
    LabGroup,
    LabImage,
    LabMachine,
    LabPool,
    LoginDefaults,
)

_Place = tuple[str | int, ...]


class Parts(Protocol):
    """What is looked at of a lab."""

    @property
    def driver(self) -> str | None: ...
    @property
    def defaults(self) -> LabDefaults: ...
    @property
    def images(self) -> Mapping[str, LabImage]: ...
    @property
    def hosts(self) -> Mapping[str, LabMachine]: ...
    @property
    def groups(self) -> Mapping[str, LabGroup]: ...
    @property
    def pools(self) -> Mapping[str, LabPool]: ...
    @property
    def secrets(self) -> Collection[str]: ...
    @property
    def login_keys(self) -> tuple[str, ...]: ...
    def login(self, host: str, key: str) -> Any: ...


def lab_mistakes(lab: Parts) -> Iterator[InitErrorDetails]:
    """Hosts, secrets and images that are named but not there, bastions that go round in a ring."""
    if lab.hosts and lab.driver is None:
        message = "is missing: with `hosts` it must be said who reaches them, such as `driver: ssh`"
        yield refused(("driver",), None, message)
    yield from _named(lab)
    yield from _members(lab)
    yield from _groups_that_differ(lab)
    wrong_via = [place for place, said in _logins(lab) if said.via and said.via not in lab.hosts]
    if not wrong_via:
        yield from _rings(lab)


def _logins(lab: Parts) -> Iterator[tuple[_Place, LoginDefaults]]:
    yield ("defaults",), lab.defaults
    yield from ((("groups", name), group) for name, group in lab.groups.items())
    yield from ((("hosts", name), host) for name, host in lab.hosts.items())


def _named(lab: Parts) -> Iterator[InitErrorDetails]:
    for place, said in _logins(lab):
        if said.via is not None and said.via not in lab.hosts:
            yield _no_host((*place, "via"), said.via, lab.hosts)
        if said.password is not None and said.password not in lab.secrets:
            # The value is not repeated: it may be the password itself.
            message = "is no name of `secrets` ({known}); a password itself never stands here"
            known = ", ".join(lab.secrets) or "there are none"
            yield refused((*place, "password"), None, message, known=known)
    image = lab.defaults.image
    if image is not None and lab.images and image not in lab.images:
        message = "{image} is no name of `images`: {known}"
        known = ", ".join(lab.images)
        yield refused(("defaults", "image"), image, message, image=repr(image), known=known)


def _members(lab: Parts) -> Iterator[InitErrorDetails]:
    lists = [
        *((("groups", name, "hosts"), group.hosts) for name, group in lab.groups.items()),
        *((("pools", name, "hosts"), pool.hosts) for name, pool in lab.pools.items()),
    ]
    for place, hosts in lists:
        for index, host in enumerate(hosts):
            if host not in lab.hosts:
                yield _no_host((*place, index), host, lab.hosts)
            elif host in hosts[:index]:
                message = "names the host {host} a second time"
                yield refused((*place, index), host, message, host=repr(host))


def _groups_that_differ(lab: Parts) -> Iterator[InitErrorDetails]:
    """Two groups of one host that say different things, where the host itself says nothing."""
    for host, own in lab.hosts.items():
        said: dict[str, tuple[str, object]] = {}
        for name, group in lab.groups.items():
            if host not in group.hosts:
                continue
            for key in lab.login_keys:
                value = getattr(group, key)
                if value is None or getattr(own, key) is not None:
                    continue
                other, before = said.setdefault(key, (name, value))
                if before != value:
                    message = (
                        "differs from the one in the group {other}, and {host} is in both;"
                        " say it at the host itself"
                    )
                    place = ("groups", name, key)
                    yield refused(place, None, message, other=repr(other), host=repr(host))


def _rings(lab: Parts) -> Iterator[InitErrorDetails]:
    told: set[str] = set()
    for host in lab.hosts:
        path: list[str] = []
        name: str | None = host
        while name is not None and name not in path and name not in told:
            path.append(name)
            name = lab.login(name, "via")
        if name is not None and name in path:
            ring = [*path[path.index(name) :], name]
            message = "goes round in a ring: {ring}"
            yield refused(("hosts", name, "via"), name, message, ring=" -> ".join(ring))
        told.update(path)


def _no_host(place: _Place, name: str, hosts: Iterable[str]) -> InitErrorDetails:
    known = ", ".join(hosts) or "there are none"
    message = "{name} is no host of the lab; its `hosts`: {known}"
    return refused(place, name, message, name=repr(name[:100]), known=known)
