"""A process is started in a host, by one that stays outside of the host's process namespace."""

# ruff: noqa: PTH120

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from opsdrill.hosts.command import SHELLS
from opsdrill.hosts.drivers.sandbox.forkserver.becoming import Calling, become
from opsdrill.hosts.drivers.sandbox.forkserver.cgroups import Groups
from opsdrill.hosts.drivers.sandbox.forkserver.entering import approach, arrive


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a command must stay within.

    Attributes:
        groups: the control groups of its host.
        joined: this process, and so all its children, stands in them already.
        processes: how many processes a user other than real root may have.
    """

    groups: Groups
    joined: bool
    processes: int


@dataclass(frozen=True, slots=True)
class Launched:
    """A process on its way into a host.

    Attributes:
        pid: its number, and `pidfd` the same.
        mark: what all it starts carries.
        told: where it tells of trouble; closed once it is what it should become.
    """

    pid: int
    pidfd: int
    mark: int
    told: int


class CannotStart(Exception):
    """A program did not come to run; `kind` is one of `Failed`."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


def launch(calling: Callable[[], Calling], pidfd: int, bounds: Bounds) -> Launched:
    """Start a process in a host; this one comes along, but for its process namespace.

    Args:
        calling: tells what it is to become, asked where the host's files can be seen.
        pidfd: the first process of the host.
        bounds: what it must stay within.

    Raises:
        OSError: the host is no more.
        CannotStart: `calling` says so.
    """
    # Opened while this machine's tree can be seen.
    folders = bounds.groups.folders
    inside = [_door(folder) for folder in folders]
    outside = [_door(os.path.dirname(folder)) for folder in folders if bounds.joined]
    told, tell = os.pipe()
    mark = approach(pidfd)
    what = calling()
    pid, joined = _fork(outside, joined=bounds.joined)
    if pid == 0:
        procs = () if joined else inside
        become(what, pidfd=pidfd, tell=tell, procs=procs, processes=bounds.processes)
    arrive(pidfd)
    for fd in {tell, *what.files.values(), *inside, *outside}:
        os.close(fd)
    return Launched(pid, os.pidfd_open(pid), mark, told)


def started_shell(told: bytes) -> str:
    """The name of the shell that runs, by what was told before one took the process's place.

    Raises:
        CannotStart: none does.
    """
    lines = told.decode(errors="replace").splitlines()
    names = [shell.name for shell in SHELLS for _ in shell.paths]
    broken = [line for line in lines if not line.startswith("no ")]
    if broken:
        kind, _, reason = broken[0].partition(" ")
        raise CannotStart(kind, reason)
    if len(lines) == len(names):
        raise CannotStart("shell", f"no shell can be started ({'; '.join(lines)})")
    return names[len(lines)]


def _fork(outside: Sequence[int], *, joined: bool) -> tuple[int, bool]:
    """Fork; where the host has as many processes as it may, from outside its control groups.

    Returns:
        The child's process id, 0 in the child, and whether it stands in the groups.
    """
    try:
        return os.fork(), joined
    except BlockingIOError:
        if not outside:
            raise
    for door in outside:
        os.write(door, b"0")
    return os.fork(), False


def _door(folder: str) -> int:
    return os.open(f"{folder}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
