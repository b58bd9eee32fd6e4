"""A command runs in a host: the process between its shell and OpsDrill.

It is the shell's parent and stands outside the host's process namespace. So it learns the true
status, also after `kill -9 -1`, and nobody inside can get in between.
"""

# ruff: noqa: PTH120, PTH123

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from opsdrill.hosts.command import SHELLS, TEXT_FD, environment
from opsdrill.hosts.drivers.sandbox.forkserver import accounts, confine, kernel
from opsdrill.hosts.drivers.sandbox.forkserver.cgroups import Groups
from opsdrill.hosts.drivers.sandbox.forkserver.entering import approach, arrive
from opsdrill.hosts.drivers.sandbox.forkserver.killing import kill_marked
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
# What the interpreter and the fork server ignore or handle, or whoever started them had them ignore
# (`nohup`, `&` in a script); a command starts with none of it.
_CHANGED_SIGNALS = (
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTSTP,
    signal.SIGTTIN,
    signal.SIGTTOU,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGPIPE,
    signal.SIGXFSZ,
    signal.SIGCHLD,
)
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
        pid: its process, and `pidfd` the same.
        mark: what all it starts carries.
        end: when its time is up.
        shell: which shell it is, once that is known.
    """

    pid: int
    pidfd: int
    mark: int
    end: float
    shell: str = ""


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


class CannotStart(Exception):
    """The shell did not come to run; `kind` is one of `Failed`."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


def execute(
    request: RunCommand,
    reply: socket.socket,
    streams: Streams,
    pidfd: int,
    bounds: Bounds,
) -> None:
    """Run the command and tell on `reply`: `Ended`, `TimedOut` or `Failed`.

    `Stop`, or the end of `reply`, kills it.
    """
    end = time.monotonic() + request.timeout
    empty = os.open("/dev/null", os.O_RDONLY)
    # Opened while this machine's tree can be seen.
    folders = bounds.groups.folders
    inside = [_door(folder) for folder in folders]
    outside = [_door(os.path.dirname(folder)) for folder in folders if bounds.joined]
    started, tell = os.pipe()
    try:
        mark = approach(pidfd)
        shell, joined = _fork(outside, joined=bounds.joined)
        if shell == 0:
            _become_shell(
                request.user,
                streams,
                pidfd=pidfd,
                empty=empty,
                tell=tell,
                procs=() if joined else inside,
                processes=bounds.processes,
            )
        arrive(pidfd)
    except OSError as error:
        send(reply, Failed("gone", f"the host is no more ({error})"))
        return
    for fd in (tell, empty, streams.text, streams.out, streams.err, *inside, *outside):
        os.close(fd)
    child = Child(shell, os.pidfd_open(shell), mark, end)
    try:
        name = _wait_for_shell(started, child, reply)
    except CannotStart as error:
        os.waitpid(shell, 0)
        send(reply, Failed(error.kind, str(error)))
        return
    if name is not None:
        _see_through(reply, replace(child, shell=name))


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


def _see_through(reply: socket.socket, child: Child) -> None:
    """Wait for the shell's end, its time limit or the word to stop; say what it was."""
    if not _wait(child.pidfd, child, reply):
        return
    status = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
    if status == -signal.SIGKILL and _host_ends():
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
    signal.pidfd_send_signal(child.pidfd, signal.SIGKILL)
    left = kill_marked(child.mark)
    os.waitpid(child.pid, 0)
    send(reply, TimedOut(left, child.shell or None))
    return False


def _host_ends() -> bool:
    """The host's first process is on its way out, and takes all others with it."""
    try:
        with open("/proc/1/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
    except OSError:
        return True
    return bool(int(fields[6]) & _PF_EXITING)


def _told_to_stop(reply: socket.socket) -> bool:
    came = receive(reply)
    return came is None or isinstance(came[0], Stop)


def _wait_for_shell(started: int, child: Child, reply: socket.socket) -> str | None:
    """The name of the shell that runs; None when it had to be killed before.

    The pipe closes when a shell takes the child's place; which attempts failed it says before.
    """
    words = b""
    while True:
        # Somebody inside may have stopped the child on its way.
        if not _wait(started, child, reply):
            return None
        chunk = os.read(started, 4096)
        if not chunk:
            break
        words += chunk
    os.close(started)
    lines = words.decode(errors="replace").splitlines()
    names = [shell.name for shell in SHELLS for _ in shell.paths]
    broken = [line for line in lines if not line.startswith("no ")]
    if broken:
        kind, _, reason = broken[0].partition(" ")
        raise CannotStart(kind, reason)
    if len(lines) == len(names):
        raise CannotStart("shell", f"no shell can be started ({'; '.join(lines)})")
    return names[len(lines)]


def _become_shell(
    user: str,
    streams: Streams,
    *,
    pidfd: int,
    empty: int,
    tell: int,
    procs: Sequence[int],
    processes: int,
) -> NoReturn:
    kind = "error"
    try:
        for group in procs:
            os.write(group, b"0")
        _be_first_to_go()
        confine.stand_in_line()
        arrive(pidfd)
        os.setsid()
        fds = [os.dup(fd) for fd in (empty, streams.out, streams.err, streams.text)]
        tell = os.dup(tell)
        for target, fd in zip((0, 1, 2, TEXT_FD), fds, strict=True):
            os.dup2(fd, target)
            os.set_inheritable(target, True)
        kind = "user"
        account = accounts.user(user)
        kind = "error"
        confine.limit(processes)
        _change_user(account)
        confine.refuse_system_calls()
        kernel.close_all_but((0, 1, 2, TEXT_FD, tell))
        for number in _CHANGED_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        _start_shell(account, tell)
    except accounts.NoAccount as error:
        os.write(tell, f"user {error}".encode())
    except BaseException as error:
        os.write(tell, f"{kind} {error}".encode())
    finally:
        os._exit(126)


def _be_first_to_go() -> None:
    """Undo what keeps us alive where memory runs out.

    Only who may lower the value makes this one the lowest that the host's root can go back to.
    """
    with open("/proc/self/oom_score_adj", "r+b", buffering=0) as adjust:
        if int(adjust.read(16)) < 0:
            adjust.write(b"0")


def _door(folder: str) -> int:
    return os.open(f"{folder}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)


def _change_user(account: accounts.Account) -> None:
    confine.drop_privileges()
    try:
        os.setgroups(account.groups)
        os.setresgid(account.gid, account.gid, account.gid)
        os.setresuid(account.uid, account.uid, account.uid)
    except OSError as error:
        # An ordinary user without a range of ids has root alone, without further groups.
        if account.uid or account.gid:
            raise accounts.NoAccount(
                f"user {account.name} cannot be had here ({error.strerror}): as an ordinary user"
                " that takes the package uidmap"
            ) from None
    kernel.keep_capabilities(confine.KEPT_CAPABILITIES if account.uid == 0 else ())
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    os.umask(0o022)
    try:
        os.chdir(account.home)
    except OSError:
        os.chdir("/")


def _start_shell(account: accounts.Account, tell: int) -> None:
    for shell in SHELLS:
        for path in shell.paths:
            variables = environment(account.name, account.home, path)
            try:
                os.execve(path, shell.arguments, variables)  # noqa: S606
            except OSError as error:
                os.write(tell, f"no {path}: {error.strerror}\n".encode())
