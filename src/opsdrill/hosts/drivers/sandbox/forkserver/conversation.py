"""A session runs in a host: the process between its program and OpsDrill.

It stands where the one of a command stands (see `execution`). The bytes do not pass through it:
OpsDrill itself has the other ends of the program's pipes, or of its terminal.
"""

from __future__ import annotations

import os
import select
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from opsdrill.hosts.command import TEXT_FD
from opsdrill.hosts.drivers.sandbox.forkserver import sftp, terminal
from opsdrill.hosts.drivers.sandbox.forkserver.accounts import Account
from opsdrill.hosts.drivers.sandbox.forkserver.becoming import Calling, start_shell
from opsdrill.hosts.drivers.sandbox.forkserver.execution import host_ends
from opsdrill.hosts.drivers.sandbox.forkserver.killing import kill_marked
from opsdrill.hosts.drivers.sandbox.forkserver.launch import (
    Bounds,
    CannotStart,
    Launched,
    launch,
    started_shell,
)
from opsdrill.hosts.drivers.sandbox.messages import (
    Begun,
    Failed,
    OpenSession,
    Over,
    Signal,
    Stop,
    receive,
    send,
)

_START_SECONDS = 30.0
_HANG_UP_SECONDS = 0.5
"""Seconds in which the end of a program that was hung up is told."""
_SIGNALLERS = 8
"""Processes on their way to pass on a signal, which somebody inside may have stopped."""


@dataclass(frozen=True, slots=True)
class Ends:
    """A session's file descriptors: the command's text and, where there is no terminal, pipes."""

    text: int
    pipes: tuple[int, ...]


def converse(
    request: OpenSession, reply: socket.socket, ends: Ends, pidfd: int, bounds: Bounds
) -> None:
    """Run a session and tell on `reply`: `Begun` and then `Over`, or `Failed`.

    The end of `reply` hangs up.
    """
    ours: list[int] = []
    try:
        process = launch(lambda: _calling(request, ends, ours), pidfd, bounds)
    except OSError as error:
        send(reply, Failed("gone", f"the host is no more ({error})"))
        return
    except CannotStart as error:
        send(reply, Failed(error.kind, str(error)))
        return
    try:
        started = _started(process, reply)
    except CannotStart as error:
        os.waitpid(process.pid, 0)
        send(reply, Failed(error.kind, str(error)))
        return
    if not started:
        os.kill(process.pid, signal.SIGKILL)
        return
    send(reply, Begun(), tuple(ours))
    # A terminal is hung up when its last owner lets go of it.
    for fd in ours:
        os.close(fd)
    _attend(process, reply)


def _calling(request: OpenSession, ends: Ends, ours: list[int]) -> Calling:
    """What the program is to be; our side of its terminal is added to `ours`."""
    prepare = None
    if request.terminal is not None:
        near, far = terminal.open_pair(*request.terminal)
        ours.append(near)
        prepare = partial(terminal.control, far)
        files = {0: far, 1: far, 2: far}
    else:
        files = dict(enumerate(ends.pipes))
    begin: Callable[[Account, int], None] = sftp.serve
    if request.kind != "files":
        begin = partial(start_shell, login=request.kind == "login", variables=request.variables)
    if request.kind == "command":
        files[TEXT_FD] = ends.text
    return Calling(request.user, files, begin, owned=(0, 1, 2), prepare=prepare)


def _started(process: Launched, reply: socket.socket) -> bool:
    """Wait until the program runs; False when nobody wants it any more, or it takes too long.

    Raises:
        CannotStart: it cannot.
    """
    words = b""
    while True:
        ready, _, _ = select.select([process.told, reply.fileno()], [], [], _START_SECONDS)
        if process.told not in ready:
            return False
        chunk = os.read(process.told, 4096)
        if not chunk:
            os.close(process.told)
            started_shell(words)
            return True
        words += chunk


def _attend(process: Launched, reply: socket.socket) -> None:
    """Pass on signals until the program ends or OpsDrill hangs up."""
    signallers: list[int] = []
    left: int | None = None
    while True:
        ready, _, _ = select.select([process.pidfd, reply.fileno()], [], [])
        if process.pidfd in ready:
            break
        came = receive(reply)
        if came is None:
            _hang_up(process)
            if not select.select([process.pidfd], [], [], _HANG_UP_SECONDS)[0]:
                return  # it does not heed that, and goes on alone
            break
        message, fds = came
        if isinstance(message, Stop):
            signal.pidfd_send_signal(process.pidfd, signal.SIGKILL)
            left = kill_marked(process.mark)
            break
        if isinstance(message, Signal):
            signallers[:] = [pid for pid in signallers if os.waitpid(pid, os.WNOHANG)[0] == 0]
            if not fds:
                _signal(process, message.number)
            elif len(signallers) < _SIGNALLERS:
                signallers += _signal_foreground(fds[0], message.number)
        for fd in fds:
            os.close(fd)
    status = os.waitstatus_to_exitcode(os.waitpid(process.pid, 0)[1])
    with suppress(OSError):  # nobody may want to know
        if status == -signal.SIGKILL and host_ends():
            send(reply, Failed("gone", "the host ended while the session was open"))
        else:
            over = Over(signal=-status) if status < 0 else Over(exit_code=status)
            send(reply, replace(over, left=left))


def _hang_up(process: Launched) -> None:
    _signal(process, signal.SIGHUP)
    # One that is stopped would hear of it only when it goes on.
    _signal(process, signal.SIGCONT)


def _signal(process: Launched, number: int) -> None:
    # It leads its process group, and its number is its own until we take note of its end.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _signal_foreground(ours: int, number: int) -> list[int]:
    """Start a process that sends a signal to a terminal's foreground; its number, if it started.

    It does so from inside: the number of a group that is no more may be this machine's by now.
    """
    try:
        pid = os.fork()
    except OSError:
        return []
    if pid:
        return [pid]
    try:
        group = terminal.foreground(ours)
        if group > 1:
            os.killpg(group, number)
    finally:
        os._exit(0)
