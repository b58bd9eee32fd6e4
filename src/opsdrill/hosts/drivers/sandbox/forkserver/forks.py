"""What the forks of the fork server do: each works on one request, answers it, and ends."""

from __future__ import annotations

import os
import select
import signal
import socket
from collections.abc import Callable

from opsdrill.hosts.drivers.sandbox.forkserver import entering, files
from opsdrill.hosts.drivers.sandbox.forkserver.accounts import NoAccount
from opsdrill.hosts.drivers.sandbox.forkserver.birth import Newborn
from opsdrill.hosts.drivers.sandbox.forkserver.launch import Bounds
from opsdrill.hosts.drivers.sandbox.forkserver.spawner import work_in
from opsdrill.hosts.drivers.sandbox.messages import (
    Done,
    Failed,
    GetFile,
    Message,
    OpenSession,
    PutFile,
    RunCommand,
    Snapshot,
    send,
)

_FILE_SECONDS = 60


def work(
    message: RunCommand | OpenSession | PutFile | GetFile | Snapshot,
    host: Newborn,
    reply: socket.socket,
    fds: list[int],
) -> None:
    """One request of one host, in a process of its own."""
    try:
        if isinstance(message, RunCommand | OpenSession):
            bounds = Bounds(host.groups, False, host.request.processes)
            work_in(message, reply, fds[1:], host.pidfd, bounds)
            return
        # Whatever a host does to its files, nobody waits any longer; then the kernel ends us.
        signal.alarm(_FILE_SECONDS)
        if isinstance(message, Snapshot):
            files.snapshot(host.files, fds[1])
        elif not _entered(host, reply):
            return
        elif isinstance(message, PutFile):
            files.write(message, fds[1])
        else:
            files.read(message.path, message.limit, fds[1])
        send(reply, Done())
    except FileNotFoundError as error:
        answer(reply, Failed("missing", str(error)))
    except NoAccount as error:
        answer(reply, Failed("user", str(error)))
    except OSError as error:
        answer(reply, Failed("error", error.strerror or str(error)))


def _entered(host: Newborn, reply: socket.socket) -> bool:
    try:
        entering.enter(host.pidfd)
    except OSError as error:
        answer(reply, Failed("gone", f"the host is no more ({error.strerror})"))
        return False
    os.umask(0o022)
    return True


Members = dict[str, tuple[int, str]]


def connect(
    join: Callable[[Members], int],
    members: Members,
    reply: socket.socket,
    keeper: socket.socket,
) -> None:
    """Make a network, hand it to the fork server on `keeper`, and say so.

    Args:
        join: `network.connect`.
        members: host id -> (pid of its first process, address).
        reply: where to answer.
        keeper: where the fork server takes the network's file descriptor.
    """
    try:
        hub = join(members)
        socket.send_fds(keeper, [b"hub"], [hub])
        keeper.recv(16)
        send(reply, Done())
    except Exception as error:
        answer(reply, Failed("error", f"the network could not be made: {error}"))


def kill(host: Newborn) -> None:
    """End a host. Repeatable."""
    try:
        signal.pidfd_send_signal(host.pidfd, signal.SIGKILL)
    except ProcessLookupError:
        return


def await_death(hosts: list[Newborn]) -> None:
    """A host's first process ends when every other process of it has."""
    for host in hosts:
        wait = select.poll()
        wait.register(host.pidfd, select.POLLIN)
        wait.poll(5000)


def wait_for_end(hosts: list[Newborn], reply: socket.socket) -> None:
    """Say when hosts that were killed are gone with their control groups."""
    await_death(hosts)
    for host in hosts:
        host.groups.remove()
    answer(reply, Done())


def answer(reply: socket.socket, message: Message) -> None:
    """Send an answer, if somebody still waits for it."""
    try:
        send(reply, message)
    except OSError:
        # Whoever asked is gone; there is nobody to tell.
        return
