"""Who a container belongs to, and whether that process still lives.

Standard library only, and only what the kernel shows of a process.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Self

LABEL = "opsdrill.owner"
RUN_LABEL = "opsdrill.run"
_PROC = Path("/proc/self")


@dataclass(frozen=True, slots=True)
class Owner:
    """A process, told apart from all others that ever were.

    An engine may serve several machines, and processes that do not see each other.

    Attributes:
        pid: its number.
        start: when it started, in the kernel's ticks.
        boot: the start of the machine that it is of.
        space: the process space its number holds in.
        machine: its machine, over restarts.
    """

    pid: int
    start: str
    boot: str
    space: str
    machine: str

    @classmethod
    def this(cls) -> Self:
        """This very process."""
        pid = os.getpid()
        return cls(pid, _start(pid) or "", *_here())

    @classmethod
    def parse(cls, label: str) -> Self | None:
        """The owner that a label names; None if it is no such label."""
        parts = label.split(":")
        if len(parts) != 5 or not parts[0].isdecimal():
            return None
        return cls(int(parts[0]), *parts[1:])

    def __str__(self) -> str:
        return ":".join((str(self.pid), self.start, self.boot, self.space, self.machine))

    @property
    def gone(self) -> bool:
        """It is certain that it lives no more."""
        boot, space, machine = _here()
        if self.machine != machine:
            return False
        if self.boot != boot:
            return True
        return self.space == space and _start(self.pid) != self.start


def _start(pid: int) -> str | None:
    """The start of a living process; a dead one keeps its number until its parent takes notice."""
    if not _PROC.exists():
        return _answers(pid)
    try:
        stat = (_PROC.parent / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    fields = stat.rpartition(b")")[2].split()
    return None if fields[0] in (b"Z", b"X") else fields[19].decode()


def _answers(pid: int) -> str | None:
    """The same where no kernel shows it: a number that is in use counts as living."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:
        return ""
    return ""


def _here() -> tuple[str, str, str]:
    boot = _read("/proc/sys/kernel/random/boot_id")
    try:
        space = Path("/proc/self/ns/pid").readlink().name.strip("pid:[]")
    except OSError:
        space = ""
    return boot, space, _read("/etc/machine-id") or socket.gethostname().replace(":", "-")


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").strip().replace(":", "-")
    except (OSError, ValueError):
        return ""
