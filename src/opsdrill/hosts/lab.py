"""The machines of a lab as a driver is told them: merged, and with their secrets looked up."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from opsdrill.hosts.secret import Secrets
from opsdrill.model.lab import Lab, LabHost


def machines(
    lab: Lab,
    folder: Path,
    names: Iterable[str] | None = None,
    secrets: Secrets | None = None,
) -> dict[str, LabHost]:
    """How to log in to hosts of a lab, and to those that lie on the way.

    Secrets of other hosts are not looked up. Calls commands of the lab, so it may take seconds.

    Args:
        lab: the lab.
        folder: the folder of its file.
        names: the hosts; those that the lab does not have are left out. None: all.
        secrets: the lab's, where some were looked up already.

    Raises:
        UsageError: a secret cannot be had; says why.
    """
    secrets = secrets or Secrets(lab.secrets, folder)
    wanted = lab.hosts if names is None else [name for name in names if name in lab.hosts]
    found: dict[str, LabHost] = {}
    for host in wanted:
        for name in lab.way(host):
            if name not in found:
                password = lab.login(name, "password")
                found[name] = lab.machine(name, password and secrets.value(password))
    return found
