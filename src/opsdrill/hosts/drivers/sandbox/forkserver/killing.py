"""A command is ended with everything it started, `setsid` and double forks included.

All of it carries the number of one UTS namespace, which it can neither change nor shed.
"""

# ruff: noqa: PTH116, PTH208
from __future__ import annotations

import os
import select
import signal
import time

PATIENCE = 5.0
"""Seconds after which killing gives up; a process may be stuck in the kernel."""
_STOP_ROUNDS = 50


def kill_marked(mark: int) -> int:
    """Kill every process of the host with this mark.

    The killer is a child inside the host: only there do the process ids in `/proc` mean the
    processes. Processes of the host may kill it; then another one takes over.

    Returns:
        How many processes were left when time was up.
    """
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        killer = os.fork()
        if killer == 0:
            try:
                os._exit(min(_sweep(mark, end), 255))
            finally:
                os._exit(255)
        left = _wait_for(killer, end)
        if left is not None:
            return left
    return 1


def _wait_for(killer: int, end: float) -> int | None:
    """How many the killer left; None when it was itself killed, or stopped until time was up."""
    wait = select.poll()
    killerfd = os.pidfd_open(killer)
    wait.register(killerfd, select.POLLIN)
    if not wait.poll(max(0.0, end - time.monotonic()) * 1000 + 500):
        signal.pidfd_send_signal(killerfd, signal.SIGKILL)
    os.close(killerfd)
    status = os.waitpid(killer, 0)[1]
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else None


def _sweep(mark: int, end: float) -> int:
    """Stop all first, so that none can start another, then kill until none is left."""
    stopped: set[int] = set()
    for _ in range(_STOP_ROUNDS):
        fresh = set(_marked(mark)) - stopped
        if not fresh:
            break
        _signal(fresh, signal.SIGSTOP)
        stopped |= fresh
    left = _marked(mark)
    while left and time.monotonic() < end:
        _signal(set(left), signal.SIGKILL)
        time.sleep(0.001)
        left = _marked(mark)
    return len(left)


def _marked(mark: int) -> list[int]:
    own = os.getpid()
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) in (1, own):
            continue
        try:
            if os.stat(f"/proc/{name}/ns/uts").st_ino == mark:
                found.append(int(name))
        except OSError:
            # It ended meanwhile, or it is another command on its way into the host.
            continue
    return found


def _signal(pids: set[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
