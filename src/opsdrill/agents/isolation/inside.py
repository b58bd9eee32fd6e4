"""The first process of a room: starts the program, ends whatever came of it, sends what is kept.

It ends when it is told to, or when whoever made it ends; with it ends everything in the room.
"""

from __future__ import annotations

import os
import resource
import select
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from opsdrill.agents.isolation.families import end_family, reap
from opsdrill.agents.isolation.keeping import send_kept
from opsdrill.agents.isolation.room import PROCESSES, Room
from opsdrill.hosts.drivers.sandbox.forkserver import kernel

END_SECONDS = 10.0
_REAP_SECONDS = 0.5
_DEFAULTS = (
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGPIPE,
    signal.SIGXFSZ,
    signal.SIGCHLD,
)


@dataclass(frozen=True, slots=True)
class Ends:
    """File descriptors of the process that looks after the program.

    Attributes:
        life: at its end, or with anything to read, the program has to end.
        report: takes lines: how far it is.
        kept: takes the archive of what is kept.
    """

    life: int
    report: int
    kept: int

    def say(self, word: str, text: str | int = "") -> None:
        """Report one thing."""
        os.write(self.report, f"{word} {text}".replace("\n", " ").encode()[:2000] + b"\n")


class CannotStart(Exception):
    """The program itself cannot be started."""


def look_after(room: Room, ends: Ends, others: Callable[[], bool]) -> None:
    """Start the program and see it to its end.

    Args:
        others: ends everything that came of the program; False: some is left.
    """
    try:
        program = _start(room)
    except (OSError, CannotStart) as error:
        ends.say("cannot", str(error))
        return
    ends.say("started")
    status, told = _wait(program, ends.life)
    if not others():
        ends.say("left")
    if status is None:
        reap_one(program)
    ends.say("stopped" if told else "ended", -1000 if status is None else status)
    os.close(ends.report)
    send_kept(room, ends.kept)


def reap_one(pid: int) -> None:
    """Take note of an end that somebody else may have taken note of."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def end_room() -> bool:
    """Kill every process of this process namespace but its first, which this one is."""
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        return True
    return end_family(END_SECONDS)


def _wait(program: int, life: int) -> tuple[int | None, bool]:
    """What the program ended with, and whether it was told to."""
    pidfd = os.pidfd_open(program)
    try:
        while True:
            ready, _, _ = select.select([pidfd, life], [], [], _REAP_SECONDS)
            if pidfd in ready:
                return os.waitstatus_to_exitcode(os.waitpid(program, 0)[1]), False
            if ready:
                return None, True
            reap(program)
    finally:
        os.close(pidfd)


def _start(room: Room) -> int:
    """Start the program; its number.

    Raises:
        CannotStart: it cannot be.
    """
    near, far = os.pipe()
    program = os.fork()
    if program == 0:
        _become(room, far)
    os.close(far)
    with os.fdopen(near, "rb") as told:
        trouble = told.read(2000)
    if trouble:
        os.waitpid(program, 0)
        raise CannotStart(trouble.decode(errors="replace"))
    return program


def _become(room: Room, tell: int) -> NoReturn:
    try:
        os.setsid()
        ticket = os.open(room.stdin, os.O_RDONLY)
        os.dup2(ticket, 0)
        tell = _moved(tell, (0, 1, 2))
        kernel.close_all_but((0, 1, 2, tell))
        os.set_inheritable(tell, False)
        if room.isolated:
            _be_nobody(room)
        os.chdir(room.work)
        os.umask(0o077)
        for number in _DEFAULTS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.execve(room.argv[0], list(room.argv), room.environment)  # noqa: S606
    except OSError as error:
        os.write(tell, f"{error.strerror}".encode())
    except BaseException as error:
        os.write(tell, f"{type(error).__name__}: {error}".encode())
    finally:
        os._exit(127)


def _moved(fd: int, taken: Sequence[int]) -> int:
    while fd in taken:
        fd = os.dup(fd)
    return fd


def _be_nobody(room: Room) -> None:
    """The program's user, without any right beside those of its numbers."""
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    most = PROCESSES if hard == resource.RLIM_INFINITY else min(PROCESSES, hard)
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in range(64):
        try:
            kernel.prctl(kernel.PR_CAPBSET_DROP, number)
        except OSError:
            break
    if os.getuid() != room.uid:
        os.setgroups([])
        os.setresgid(room.gid, room.gid, room.gid)
        os.setresuid(room.uid, room.uid, room.uid)
    kernel.keep_capabilities(())
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
