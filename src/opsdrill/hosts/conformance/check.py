"""A check: one sentence that a driver must keep, and the code that tries it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from opsdrill.hosts.driver import Driver, Host
from opsdrill.model.scenario import HostSpec

Need = Literal["users", "throw-away", "network"]
"""`users`: commands run as users other than root. `throw-away`: the host may be broken, and is
what its driver made it. `network`: hosts reach each other by name."""

SECONDS = 90.0
"""Seconds after which a check counts as hanging, if it does not say otherwise."""


class Broken(Exception):
    """The driver does not keep the sentence; the message says what was seen."""


class NotApplicable(Exception):
    """The sentence cannot be tried here; the message says why."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a check gets: the driver, the hosts to ask it for, and those that are there for it."""

    driver: Driver
    specs: tuple[HostSpec, ...]
    hosts: tuple[Host, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """One sentence and how it is tried.

    Attributes:
        id: its group and name, such as `statuses.exit-255`.
        sentence: what the driver must keep.
        hosts: how many hosts it is given; 0: it asks the driver itself.
        body: tries it; raises Broken or NotApplicable.
        needs: what must hold for it to be tried.
        programs: what the first host must have installed.
        scripted: it is also for hosts that answer from a script, since it asks for nothing but
            `true`, `exit 3`, `sleep 9999`, files, and what its own text says.
        seconds: after these it counts as hanging.
    """

    id: str
    sentence: str
    hosts: int
    body: Callable[[Given], Awaitable[None]]
    needs: tuple[Need, ...] = ()
    programs: tuple[str, ...] = ()
    scripted: bool = False
    seconds: float = SECONDS

    @property
    def group(self) -> str:
        """What it is of: `commands`, `files`, ..."""
        return self.id.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a check; `seen` says what was seen, or why it does not apply."""

    check: Check
    result: Literal["passed", "failed", "not applicable"]
    seen: str = ""


def on_host(
    *needs: Need, programs: Sequence[str] = (), scripted: bool = False, seconds: float = SECONDS
) -> Callable[[Callable[[Host], Awaitable[None]]], Check]:
    """Make a check of a function of one host; its docstring is the sentence."""

    def made(tries: Callable[[Host], Awaitable[None]]) -> Check:
        async def body(given: Given) -> None:
            await tries(given.hosts[0])

        return Check(
            _id(tries), _sentence(tries), 1, body, needs, tuple(programs), scripted, seconds
        )

    return made


def on_two_hosts(
    *needs: Need, programs: Sequence[str] = (), scripted: bool = False, seconds: float = SECONDS
) -> Callable[[Callable[[Host, Host], Awaitable[None]]], Check]:
    """Make a check of a function of two hosts of one run."""

    def made(tries: Callable[[Host, Host], Awaitable[None]]) -> Check:
        async def body(given: Given) -> None:
            first, second = given.hosts
            await tries(first, second)

        return Check(
            _id(tries), _sentence(tries), 2, body, needs, tuple(programs), scripted, seconds
        )

    return made


def on_driver(
    *needs: Need, scripted: bool = True, seconds: float = SECONDS
) -> Callable[[Callable[[Driver, Sequence[HostSpec]], Awaitable[None]]], Check]:
    """Make a check of a function of the driver and the hosts to ask it for, one or two."""

    def made(tries: Callable[[Driver, Sequence[HostSpec]], Awaitable[None]]) -> Check:
        async def body(given: Given) -> None:
            await tries(given.driver, given.specs)

        return Check(_id(tries), _sentence(tries), 0, body, needs, (), scripted, seconds)

    return made


def _id(tries: Callable[..., Awaitable[None]]) -> str:
    return f"{tries.__module__.rpartition('.')[2]}.{tries.__name__.replace('_', '-')}"


def _sentence(tries: Callable[..., Awaitable[None]]) -> str:
    return " ".join((inspect.getdoc(tries) or "").split("\n\n")[0].split())
