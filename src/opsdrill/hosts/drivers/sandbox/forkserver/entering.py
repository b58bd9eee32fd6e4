"""A forked process goes into a host."""

# ruff: noqa: PTH116
from __future__ import annotations

import os

from opsdrill.hosts.drivers.sandbox.forkserver import kernel

_ALL_BUT_USERS = (
    kernel.CLONE_NEWPID
    | kernel.CLONE_NEWNS
    | kernel.CLONE_NEWNET
    | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWCGROUP
)


def enter(pidfd: int) -> int:
    """Join the namespaces of the host whose first process `pidfd` is.

    The UTS namespace is a fresh copy: its number marks everything this process's children start.
    Nobody inside can change it, for that takes a capability which no host has.

    The process itself stays outside the host's process namespace, so that nobody inside can see
    or kill it; only its children are inside.

    Returns:
        The number of the UTS namespace, as `stat` of `/proc/PID/ns/uts` tells it.
    """
    mark = approach(pidfd)
    arrive(pidfd)
    return mark


def approach(pidfd: int) -> int:
    """The first half of `enter`: this process is still what it was on the machine."""
    kernel.setns(pidfd, kernel.CLONE_NEWUTS)
    kernel.unshare(kernel.CLONE_NEWUTS)
    mark = os.stat("/proc/self/ns/uts").st_ino
    kernel.setns(pidfd, _ALL_BUT_USERS)
    return mark


def arrive(pidfd: int) -> None:
    """The second half of `enter`: from now on it is one of the host's users."""
    kernel.setns(pidfd, kernel.CLONE_NEWUSER)
    # Entering made this process readable again where the machine is set so.
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
