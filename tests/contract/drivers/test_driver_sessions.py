"""Sessions: programs that talk while they run, the same on every driver."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from opsdrill.hosts.conformance import Check

GROUPS = ("sessions", "terminals", "sftp")


async def test_sessions(
    keeps: Callable[[], Awaitable[None]], driver_name: str, check: Check
) -> None:
    """The driver keeps the sentence that the check's id stands for."""
    if (driver_name, check.id) == ("local", "terminals.terminal-has-a-name"):
        pytest.skip("the machine of the test has another /dev/pts than the one that asks")
    await keeps()
