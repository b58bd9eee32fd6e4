"""Hosts of one run: made, reached by name, given back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

GROUPS = ("fleets",)


async def test_fleet(keeps: Callable[[], Awaitable[None]]) -> None:
    """The driver keeps the sentence that the check's id stands for."""
    await keeps()
