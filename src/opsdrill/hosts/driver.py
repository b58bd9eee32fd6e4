"""The driver protocol: where hosts come from. Every driver passes one conformance suite.

A driver makes a `Fleet` for one run; a fleet holds `Host`s and is always released.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from opsdrill.hosts.session import Session, SessionRequest
from opsdrill.model.host import ChangedFile, Command, HostAnswer, HostFacts
from opsdrill.model.lab import LabHost
from opsdrill.model.scenario import HostSpec
from opsdrill.registry import Registry


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing a driver found out about this machine, by trying it.

    `remedy` is the one command or step that mends it; `blocks` says that the driver cannot work,
    or cannot give this host. `host` names the one that it is about; None: the driver as a whole.
    `lab_line` is there where nothing of this machine is missing, but a line in a lab's file.
    """

    what: str
    good: bool
    detail: str = ""
    remedy: str | None = None
    blocks: bool = False
    host: str | None = None
    lab_line: str | None = None


@dataclass(frozen=True, slots=True)
class DriverContext:
    """What a driver is told when it is made.

    Args:
        state: a folder of the driver's own, kept between processes, for what must be found again.
        options: the lab's options for this driver, such as `size`.
        folder: the folder that relative paths in `options` start from.
        notify: called with a run's id and a line about what it waits for.
        hosts: the lab's machines that exist, by name.
        images: what this driver makes a host from, such as `debian:12`, by the lab's name for it.
        image: the lab's name, or the driver's own, for hosts whose scenario names no image.
    """

    state: Path
    options: Mapping[str, str] = field(default_factory=dict)
    folder: Path = field(default_factory=Path)
    notify: Callable[[str, str], None] | None = None
    hosts: Mapping[str, LabHost] = field(default_factory=dict)
    images: Mapping[str, str] = field(default_factory=dict)
    image: str | None = None


class Host(Protocol):
    """One host while a run has it."""

    @property
    def facts(self) -> HostFacts:
        """What the host is made of."""

    async def run(self, command: Command) -> HostAnswer:
        """Run one command in a fresh shell, by the rules of the conformance suite, and tell what
        became of it.

        Never raises for anything that the host or the command did: a time-out and silence are
        answers. Cancelling the call kills the command with all its descendants.
        """

    async def open(self, request: SessionRequest) -> Session:
        """Start a program that talks while it runs; whoever opens a session closes it.

        Raises:
            HostError: it cannot be started: no such user, no terminal; says why.
            HostUnreachable: the host does not answer.
        """

    async def put(
        self, path: str, content: bytes, *, mode: int | None = 0o644, owner: str | None = "root"
    ) -> None:
        """Write a file, making missing parent folders (0755, root).

        `mode` or `owner` None: a file that exists keeps its own, a new one gets the default.

        Raises:
            HostError: it could not be written; says why.
            HostUnreachable: the host does not answer.
        """

    async def get(self, path: str, *, limit: int = 1024 * 1024) -> bytes:
        """The first `limit` bytes of a file.

        Raises:
            FileNotFoundError: there is no such file.
            HostError: it could not be read.
            HostUnreachable: the host does not answer.
        """

    async def mark(self) -> None:
        """Setup ended: changed files are counted from now on."""

    async def changed(self) -> tuple[ChangedFile, ...] | None:
        """The files changed since `mark`, sorted by path; None where the driver cannot tell."""


class Fleet(Protocol):
    """The hosts of one run; they reach each other by name."""

    @property
    def hosts(self) -> Mapping[str, Host]: ...

    async def release(self) -> None:
        """Give everything back: processes, mounts, networks, files. Never raises; repeatable."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Driver(Protocol):
    """Gives hosts. Made once for a process, by `DRIVERS.get(name)(context)`."""

    name: str
    throw_away: bool
    """Its hosts vanish with the run, so no restore is needed."""

    def __init__(self, context: DriverContext) -> None: ...

    async def preflight(self, hosts: Sequence[HostSpec] = ()) -> list[Finding]:
        """What works here and what does not, found by trying. Never raises."""

    async def provision(self, run: str, hosts: Sequence[HostSpec]) -> Fleet:
        """Make the hosts of a run. All or nothing: a failure leaves nothing behind.

        Raises:
            DriverUnavailable: this machine cannot give such hosts; says what to install.
            ProvisionFailed: a host could not be made.
        """

    async def reap(self) -> list[str]:
        """Remove what processes that are no more left behind; says what, one line each."""

    async def close(self) -> None:
        """End what the driver itself runs. Repeatable."""


DRIVERS: Registry[type[Driver]] = Registry("driver", "opsdrill.drivers")
