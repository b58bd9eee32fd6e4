"""This process, told apart from any other for good, and whether another one still lives."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from opsdrill.store.store import Owner

PROC = Path("/proc")
_START_TIME = 19
"""The place of `starttime` in /proc/PID/stat counted after the command's name; see proc(5)."""


def this_process(proc: Path = PROC) -> Owner:
    """The owner that stands for this process."""
    pid = os.getpid()
    return Owner(_machine(proc), _boot(proc), pid, _started(pid, proc) or 0)


def is_gone(owner: Owner, proc: Path = PROC) -> bool:
    """Whether the owner is known to live no more.

    A process of another machine, or of another pid namespace, cannot be seen from here: not
    seen is not gone.
    """
    if owner.machine != _machine(proc):
        return False
    if owner.boot != _boot(proc):
        return True
    started = _started(owner.pid, proc)
    if started is None and not owner.started:
        return not _answers(owner.pid)
    return started != owner.started


def _machine(proc: Path) -> str:
    """The host name, the machine's id and the pid namespace: within it a pid means one process."""
    machine = _text(Path("/etc/machine-id"))
    try:
        space = str((proc / "self/ns/pid").readlink())
    except OSError:
        space = ""
    return " ".join(part for part in (platform.node(), machine, space) if part)


def _boot(proc: Path) -> str:
    return _text(proc / "sys/kernel/random/boot_id")


def _started(pid: int, proc: Path) -> int | None:
    """Clock ticks from the boot to the process's start; None when it is not there or ended."""
    stat = _text(proc / str(pid) / "stat")
    # The command's name may hold spaces and brackets; what follows the last bracket does not.
    fields = stat.rpartition(")")[2].split()
    if len(fields) <= _START_TIME or fields[0] in ("Z", "X"):
        return None
    return int(fields[_START_TIME])


def _answers(pid: int) -> bool:
    """Whether there is such a process, where there is no /proc to ask."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
