"""What preflight found out about machines, for a person to read."""

from __future__ import annotations

import time
from collections.abc import Mapping

from opsdrill.hosts.driver import Finding
from opsdrill.hosts.drivers.ssh.reasons import NoConnection
from opsdrill.hosts.look import Look
from opsdrill.model.lab import LabHost

_CLOCK_SECONDS = 5
"""A clock that differs by more makes times in logs and certificates misleading."""
_LAB_LINE = "hosts: {web-01: ADDRESS}"


def lab_finding(machines: Mapping[str, LabHost]) -> Finding:
    """Whether there is any machine at all."""
    count = len(machines)
    return Finding(
        "machines in the lab",
        bool(machines),
        f"{count} of them" if machines else "none",
        None if machines else f"name them in lab.yaml: `{_LAB_LINE}`",
        blocks=not machines,
        lab_line=None if machines else _LAB_LINE,
    )


def silence_finding(error: NoConnection) -> Finding:
    """A machine that could not be reached; only what waiting does not mend blocks."""
    return Finding("connection", False, error.reason, error.hint, blocks=not error.passing)


def look_findings(machine: LabHost, look: Look) -> list[Finding]:
    """A machine that answered.

    Args:
        machine: its entry in the lab.
        look: what it said just now.
    """
    system = ", ".join(filter(None, (look.distribution, look.kernel)))
    found = [
        Finding("connection", True, system or "says nothing about itself"),
        _login(machine, look),
        Finding(
            "shell",
            look.shell is not None,
            look.shell or "neither bash nor sh where they belong",
            None if look.shell else "install bash",
            blocks=look.shell is None,
        ),
        _clock(look),
    ]
    if look.lacks:
        found.append(
            Finding(
                "programs",
                False,
                f"lacks {', '.join(look.lacks)}",
                "install coreutils or busybox",
                blocks="env" in look.lacks,
            )
        )
    if not look.marks:
        found.append(
            Finding(
                "time limits",
                False,
                "its shell has no `ulimit -x`, or there is no /proc: what a command started is not"
                " killed with it",
                "install bash or dash, mount /proc",
            )
        )
    return found


def _login(machine: LabHost, look: Look) -> Finding:
    root = look.uid == 0
    way = f"{machine.user}, root by sudo" if machine.sudo else machine.user
    return Finding(
        "login",
        root,
        way if root else f"{way}, who is not root and cannot become root",
        None if root else "set `sudo: true` for it in the lab, or `user: root`",
    )


def _clock(look: Look) -> Finding:
    if look.clock is None:
        return Finding("clock", False, "not known", "install date")
    difference = look.clock - round(time.time())
    good = abs(difference) <= _CLOCK_SECONDS
    words = "as here" if good else f"{abs(difference)} s {'ahead' if difference > 0 else 'behind'}"
    return Finding("clock", good, words, None if good else "synchronise its clock")
