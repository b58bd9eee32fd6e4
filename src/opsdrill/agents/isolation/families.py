"""A process and all that came of it: found by who is whose parent, and ended.

Whoever leaves its session, or whose parent ends, stays in the family: orphans go to the process
that called `adopt`, or to the first process of a process namespace.
"""

# ruff: noqa: PTH123

from __future__ import annotations

import os
import signal
import time
from collections import defaultdict
from contextlib import suppress

from opsdrill.hosts.drivers.sandbox.forkserver import kernel

_PAUSE = 0.01


def adopt() -> None:
    """From now on orphans of this process's family are its own children."""
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)


def family(of: int) -> list[int]:
    """All that came of a process, itself left out; the near ones first."""
    children: dict[int, list[int]] = defaultdict(list)
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit() and (parent := _parent(name)) is not None:
            children[parent].append(int(name))
    found = list(children[of])
    for pid in found:
        found += children[pid]
    return found


def reap(but: int) -> None:
    """Take note of the ends of this process's children, one of them left out."""
    me = os.getpid()
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit() and int(name) != but and _parent(name) == me:
            with suppress(ChildProcessError):
                os.waitpid(int(name), os.WNOHANG)


def end_family(seconds: float) -> bool:
    """Kill all that came of this process; False: some of it is still there after so long.

    Nothing that is killed can start anything any more, and each round finds what was started
    before: the rounds come to an end, for all are stopped before any is killed.
    """
    me = os.getpid()
    end = time.monotonic() + seconds
    while left := family(me):
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in left:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
        reap(0)
        if time.monotonic() > end:
            return False
        time.sleep(_PAUSE)
    return True


def end_marked(mark: bytes, seconds: float) -> bool:
    """Kill all that have an entry in their environment; False: some are still there after so long.

    That is how those are found whose family nobody looks after any more.
    """
    end = time.monotonic() + seconds
    while left := _marked(mark):
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in left:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
        if time.monotonic() > end:
            return False
        time.sleep(_PAUSE)
    return True


def _marked(mark: bytes) -> list[int]:
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit() and int(name) != os.getpid():
            with suppress(OSError), open(f"/proc/{name}/environ", "rb") as environment:
                if mark in environment.read().split(b"\0"):
                    found.append(int(name))
    return found


def _parent(pid: str) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return int(stat.read().rpartition(b")")[2].split()[1])
    except OSError:
        return None
