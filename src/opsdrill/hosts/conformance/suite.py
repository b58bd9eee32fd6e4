"""All checks, in the order in which they are tried."""

from __future__ import annotations

from types import ModuleType

from opsdrill.hosts.conformance import (
    changes,
    files,
    fleets,
    outputs,
    processes,
    sessions,
    sftp,
    shells,
    statuses,
    terminals,
    texts,
)
from opsdrill.hosts.conformance.check import Check


def _of(module: ModuleType) -> list[Check]:
    return [value for value in vars(module).values() if isinstance(value, Check)]


CHECKS: tuple[Check, ...] = tuple(
    check
    for module in (
        shells,
        texts,
        statuses,
        processes,
        outputs,
        files,
        changes,
        sessions,
        terminals,
        sftp,
        fleets,
    )
    for check in _of(module)
)
"""Every check; ids are unique."""
