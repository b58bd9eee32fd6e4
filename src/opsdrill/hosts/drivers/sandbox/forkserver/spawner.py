"""The process of a host that stands in its control groups; commands are forked from it.

Moving a process into a group waits until every processor took notice (an RCU grace period, 10 to
20 ms), so it is done once for a host and ahead of time: what is forked here is in the groups from
its first moment.
"""

# ruff: noqa: PTH123
from __future__ import annotations

import os
import signal
import socket
import traceback
from dataclasses import dataclass
from typing import NoReturn

from opsdrill.hosts.drivers.sandbox.forkserver import cgroups, kernel
from opsdrill.hosts.drivers.sandbox.forkserver.conversation import Ends, converse
from opsdrill.hosts.drivers.sandbox.forkserver.execution import Streams, execute
from opsdrill.hosts.drivers.sandbox.forkserver.launch import Bounds
from opsdrill.hosts.drivers.sandbox.messages import (
    MakeHost,
    OpenSession,
    RunCommand,
    receive,
    send,
)


@dataclass(frozen=True, slots=True)
class Spawner:
    """A spawner as the fork server knows it; it ends when `line` is closed."""

    groups: cgroups.Groups
    line: socket.socket

    def belong_to(self, request: MakeHost) -> None:
        """From now on it works for this host, within its bounds.

        Raises:
            OSError: a bound that the kernel refuses, or the spawner is no more.
        """
        cgroups.bound(self.groups, request.processes, request.memory)
        send(self.line, request)

    def run(self, request: RunCommand | OpenSession, fds: tuple[int, ...]) -> None:
        """Have a command run, or a session.

        Args:
            request: what it is.
            fds: what came with it, and the pidfd of the host.

        Raises:
            OSError: the spawner is no more.
        """
        send(self.line, request, fds)


def start(where: list[cgroups.Place], name: str) -> Spawner:
    """Start a spawner in new groups without bounds yet.

    Raises:
        OSError: the groups or the process cannot be made.
    """
    groups = cgroups.make(where, name)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        try:
            if os.fork() == 0:
                _stand(groups, theirs)
        except OSError:
            ours.close()
            groups.remove()
            raise
    ours.setblocking(False)  # one that is stuck must not hold up the other hosts
    return Spawner(groups, ours)


def _stand(groups: cgroups.Groups, line: socket.socket) -> NoReturn:
    try:
        kernel.close_all_but((0, 1, 2, line.fileno()))
        groups.join()
        _outlive_the_host()
        processes = 0
        while (came := receive(line)) is not None:
            message, fds = came
            if isinstance(message, MakeHost):
                processes = message.processes
            elif isinstance(message, RunCommand | OpenSession):
                _fork(message, fds, line, groups, processes)
            for fd in fds:
                os.close(fd)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def _fork(
    request: RunCommand | OpenSession,
    fds: list[int],
    line: socket.socket,
    groups: cgroups.Groups,
    processes: int,
) -> None:
    joined = True
    try:
        child = os.fork()
    except BlockingIOError:
        # The host has as many processes as it may: fork outside, for the shell to join.
        joined = False
        groups.leave()
        child = os.fork()
        if child:
            groups.join()
    if child:
        return
    line.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    reply = socket.socket(fileno=fds[0])
    work_in(request, reply, fds[1:-1], fds[-1], Bounds(groups, joined, processes))
    os._exit(0)


def work_in(
    request: RunCommand | OpenSession,
    reply: socket.socket,
    fds: list[int],
    pidfd: int,
    bounds: Bounds,
) -> None:
    """Do what is asked in a host, in a process of its own; `fds` are without the reply socket."""
    if isinstance(request, RunCommand):
        execute(request, reply, Streams(*fds), pidfd, bounds)
    else:
        converse(request, reply, Ends(fds[0], tuple(fds[1:])), pidfd, bounds)


def _outlive_the_host() -> None:
    """Where its memory runs out, what the host runs is ended, not what watches it."""
    try:
        with open("/proc/self/oom_score_adj", "wb", buffering=0) as adjust:
            adjust.write(b"-1000")
    except PermissionError:
        # A container's root that may not; then the kernel takes the largest, hardly ever us.
        return
