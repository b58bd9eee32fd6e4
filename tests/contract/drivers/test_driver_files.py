"""Files of a host: put, get, and what changed since setup."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

GROUPS = ("files", "changes")


async def test_files(keeps: Callable[[], Awaitable[None]]) -> None:
    """The driver keeps the sentence that the check's id stands for."""
    await keeps()
