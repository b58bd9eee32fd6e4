"""A command runs in a host: the process between its shell and OpsDrill.

It is the shell's parent and stands outside the host's process namespace. So it learns the true
status, also after `kill -9 -1`, and nobody inside can get in between.
"""

# ruff: noqa: PTH123

from __future__ import annotations

import os
import select
import signal
import socket
import time
from dataclasses import dataclass, replace

from opsdrill.hosts.command import TEXT_FD
from opsdrill.hosts.drivers.sandbox.forkserver.becoming import Calling, start_shell
from opsdrill.hosts.drivers.sandbox.forkserver.killing import kill_marked
from opsdrill.hosts.drivers.sandbox.forkserver.launch import (
    Bounds,
    CannotStart,
    Launched,
    launch,
    started_shell,
)
from opsdrill.hosts.drivers.sandbox.messages import (
    Ended,
    Failed,
    RunCommand,
    Stop,
    TimedOut,
    receive,
    send,
)

_LONGEST_POLL = 3600.0
_PF_EXITING = 0x4  # linux/sched.h; a flag in field 9 of proc(5)'s stat


@dataclass(frozen=True, slots=True)
class Streams:
    """File descriptors of a command: its text, standard output, standard error."""

    text: int
    out: int
    err: int


@dataclass(frozen=True, slots=True)
class Child:
    """The shell of a command.

    Attributes:
        process: where it is.
        end: when its time is up.
        shell: which shell it is, once that is known.
    """

    process: Launched
    end: float
    shell: str = ""


def execute(
    request: RunCommand, reply: socket.socket, streams: Streams, pidfd: int, bounds: Bounds
) -> None:
    """Run the command and tell on `reply`: `Ended`, `TimedOut` or `Failed`.

    `Stop`, or the end of `reply`, kills it.
    """
    end = time.monotonic() + request.timeout
    empty = os.open("/dev/null", os.O_RDONLY)
    files = {0: empty, 1: streams.out, 2: streams.err, TEXT_FD: streams.text}
    try:
        process = launch(lambda: Calling(request.user, files, start_shell), pidfd, bounds)
    except OSError as error:
        send(reply, Failed("gone", f"the host is no more ({error})"))
        return
    child = Child(process, end)
    try:
        name = _wait_for_shell(child, reply)
    except CannotStart as error:
        os.waitpid(process.pid, 0)
        send(reply, Failed(error.kind, str(error)))
        return
    if name is not None:
        _see_through(reply, replace(child, shell=name))


def host_ends() -> bool:
    """The host's first process is on its way out, and takes all others with it."""
    try:
        with open("/proc/1/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
    except OSError:
        return True
    return bool(int(fields[6]) & _PF_EXITING)


def _see_through(reply: socket.socket, child: Child) -> None:
    """Wait for the shell's end, its time limit or the word to stop; say what it was."""
    if not _wait(child.process.pidfd, child, reply):
        return
    status = os.waitstatus_to_exitcode(os.waitpid(child.process.pid, 0)[1])
    if status == -signal.SIGKILL and host_ends():
        send(reply, Failed("gone", "the host ended while the command ran"))
        return
    send(reply, Ended(128 - status if status < 0 else status, child.shell))


def _wait(fd: int, child: Child, reply: socket.socket) -> bool:
    """Wait until `fd` can be read; False when the command had to be killed, which is then said."""
    wait = select.poll()
    wait.register(fd, select.POLLIN)
    wait.register(reply, select.POLLIN)
    while True:
        rest = child.end - time.monotonic()
        ready = [number for number, _ in wait.poll(min(max(rest, 0.0), _LONGEST_POLL) * 1000 + 1)]
        if fd in ready:
            return True
        if (ready and _told_to_stop(reply)) or time.monotonic() >= child.end:
            break
    signal.pidfd_send_signal(child.process.pidfd, signal.SIGKILL)
    left = kill_marked(child.process.mark)
    os.waitpid(child.process.pid, 0)
    send(reply, TimedOut(left, child.shell or None))
    return False


def _told_to_stop(reply: socket.socket) -> bool:
    came = receive(reply)
    return came is None or isinstance(came[0], Stop)


def _wait_for_shell(child: Child, reply: socket.socket) -> str | None:
    """The name of the shell that runs; None when it had to be killed before.

    The pipe closes when a shell takes the child's place; which attempts failed it says before.
    """
    told = child.process.told
    words = b""
    while True:
        # Somebody inside may have stopped the child on its way.
        if not _wait(told, child, reply):
            return None
        chunk = os.read(told, 4096)
        if not chunk:
            break
        words += chunk
    os.close(told)
    return started_shell(words)
