"""What a sandbox host is made of, and what is bounded in it."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from opsdrill.hosts.command import SHELLS
from opsdrill.hosts.drivers.sandbox.options import Options
from opsdrill.model.host import HostFacts

_STATUS = Path("/var/lib/dpkg/status")


def host_facts(name: str, options: Options, notes: Mapping[str, str]) -> HostFacts:
    """The facts of a host made here.

    Args:
        name: its name.
        options: the lab's options.
        notes: what the fork server can do here.
    """
    return HostFacts(
        name=name,
        driver="sandbox",
        shell=_shell(),
        distribution=distribution(),
        kernel=platform.release(),
        packages_digest=_packages(),
        users=notes["users"] == "yes",
        limits=limits(options, notes),
    )


def limits(options: Options, notes: Mapping[str, str]) -> dict[str, str]:
    """What is bounded and what is not, in words."""
    root = notes["root"] == "yes"
    if notes["pids"] == "yes":
        processes = f"at most {options.processes}"
    elif root:
        processes = "not bounded for root: this machine offers no pids control group"
    else:
        processes = f"at most {options.processes} for each user"
    return {
        "disk": f"{_size(options.size)} for all files together, kept in memory",
        "processes": processes,
        "memory": (
            f"at most {_size(options.memory)}"
            if notes["memory"] == "yes"
            else "not bounded: that takes root and a memory control group"
        ),
        "open files": "1024 for a process, 4096 if it asks for more",
        "usr": "can be changed" if root else "read-only, but for /usr/local",
        "users": (
            "all"
            if notes["users"] == "yes"
            else "root alone: others need the package uidmap and ids in /etc/subuid and /etc/subgid"
        ),
        "system calls": (
            "dangerous ones are refused"
            if notes["filter"] == "yes"
            else "not filtered: unknown processor"
        ),
        "systemd": "not there",
    }


def _size(number: int) -> str:
    """`256 MiB`; in the largest unit that shows it exactly."""
    units = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
    return next(
        (f"{number // n} {unit}" for n, unit in units if number % n == 0), f"{number} bytes"
    )


@lru_cache(maxsize=1)
def distribution() -> str | None:
    """The name of the distribution whose programs the hosts have."""
    try:
        lines = Path("/usr/lib/os-release").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    for line in lines:
        key, _, value = line.partition("=")
        if key == "PRETTY_NAME":
            return value.strip("\"'")
    return None


def _shell() -> str:
    for shell in SHELLS:
        if any(os.access(path, os.X_OK) for path in shell.paths):
            return shell.name
    return SHELLS[-1].name


def _packages() -> str | None:
    try:
        return _packages_as_of(_STATUS.stat().st_mtime_ns)
    except OSError:
        return None


@lru_cache(maxsize=1)
def _packages_as_of(_changed: int) -> str:
    """SHA-256 over the sorted lines `package version` of what dpkg has installed."""
    found, package, installed = [], "", False
    for line in _STATUS.read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, value = line.partition(": ")
        if key == "Package":
            package, installed = value, False
        elif key == "Status":
            installed = value.endswith(" installed")
        elif key == "Version" and installed:
            found.append(f"{package} {value}")
    return hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest()
