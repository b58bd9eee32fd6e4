"""Sessions: programs that talk while they run, the same on every driver."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

GROUPS = ("sessions", "terminals", "sftp")


async def test_sessions(keeps: Callable[[], Awaitable[None]]) -> None:
    """The driver keeps the sentence that the check's id stands for."""
    await keeps()
