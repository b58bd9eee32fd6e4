"""Every place of a scenario that names a host: that host must be one of the scenario's.

Works on a scenario and on the plain data of one that was refused for something else, so that all
mistakes are told at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic_core import InitErrorDetails

from opsdrill.model.fields import refused

_STEPS = ("files", "setup", "ready", "reference", "restore")
_Place = tuple[str | int, ...]


def host_mistakes(scenario: object) -> Iterator[InitErrorDetails]:
    """Hosts named twice, hosts that the scenario does not have, steps without any host."""
    names = [
        host if isinstance(host, str) else _get(host, "name")
        for host in _list(_get(scenario, "hosts"))
    ]
    for index, name in enumerate(names):
        if name in names[:index]:
            message = "names the host {name} a second time"
            yield refused(("hosts", index), name, message, name=repr(name))
    for place, name in _needed(scenario):
        if not names:
            where = place if name is not None else place[:-1]
            yield refused(where, name, "needs a host, but the scenario has no `hosts`")
        elif isinstance(name, str) and name not in names:
            known = ", ".join(str(known) for known in names)
            message = "{name} is no host of the scenario; its hosts: {known}"
            yield refused(place, name, message, name=repr(name[:100]), known=known)


def _needed(scenario: object) -> Iterator[tuple[_Place, object]]:
    for part in _STEPS:
        for index, step in enumerate(_list(_get(scenario, part))):
            yield (part, index, "on"), _get(step, "on")
    yield from _required(_get(scenario, "requires"))
    for index, rule in enumerate(_list(_get(scenario, "validation"))):
        if _get(rule, "validator") == "host_state":
            yield ("validation", index, "on"), _get(rule, "on")
        if _get(rule, "validator") == "turns":
            for turn, item in enumerate(_list(_get(rule, "turns"))):
                for number, name in enumerate(_list(_get(item, "hosts"))):
                    yield ("validation", index, "turns", turn, "hosts", number), name


def _required(requires: object) -> Iterator[tuple[_Place, object]]:
    """Hosts named by `requires`, as a model or in any of the ways to write it."""
    if isinstance(requires, Mapping) and "by_host" not in requires:
        yield from (
            (("requires", key), key)
            for key in requires
            if isinstance(key, str) and key not in ("commands", "users", "systemd")
        )
    by_host = _get(requires, "by_host")
    if isinstance(by_host, Mapping):
        yield from ((("requires", name), name) for name in by_host if isinstance(name, str))
    asks = ("commands", "users", "systemd")
    if _list(requires) or any(_get(requires, name) for name in asks):
        yield ("requires", "commands"), None


def _get(thing: object, name: str) -> Any:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def _list(value: object) -> list[Any] | tuple[Any, ...]:
    return value if isinstance(value, (list, tuple)) else ()
