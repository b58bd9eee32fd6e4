"""How commands run: the same on every driver. Each test is a check of the shipped suite."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from opsdrill.hosts.driver import Driver
from opsdrill.model.host import Command
from opsdrill.model.scenario import HostSpec

GROUPS = ("shells", "texts", "statuses", "processes", "outputs")


async def test_commands(keeps: Callable[[], Awaitable[None]]) -> None:
    """The driver keeps the sentence that the check's id stands for."""
    await keeps()


@pytest.mark.parametrize("driver_name", ["container", "container of sh only", "local", "sandbox"])
async def test_kill_everything_has_a_status(driver: Driver) -> None:
    """Where nothing of ours is among the killed, the status is known, and never `dropped`."""
    async with await driver.provision("killed", [HostSpec(name="web-01")]) as fleet:
        host = fleet.hosts["web-01"]
        answer = await host.run(Command(run="kill -9 -1; sleep 1; exit 6", timeout=20))
        assert answer.exit_code in (6, 137), answer


@pytest.mark.parametrize("driver_name", ["ssh", "ssh to sh only"])
async def test_kill_everything_over_ssh_is_dropped(driver: Driver) -> None:
    """The SSH server is among the killed, so that nobody is left to tell a status."""
    async with await driver.provision("killed", [HostSpec(name="web-01")]) as fleet:
        host = fleet.hosts["web-01"]
        answer = await host.run(Command(run="kill -9 -1; sleep 1; exit 6", timeout=20))
        assert answer.dropped, answer
