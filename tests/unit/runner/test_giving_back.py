"""Hosts are released whenever the giving back of them is cancelled."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from opsdrill.hosts.driver import DriverContext
from opsdrill.hosts.drivers.fake import FakeDriver
from opsdrill.model.scenario import HostSpec
from opsdrill.runner.giving_back import give_back
from opsdrill.runner.journal import Journal


@pytest.mark.parametrize("cancels", [1, 2])
async def test_cancelled_before_the_restoring_began(cancels: int, tmp_path: Path) -> None:
    """A cancellation may come after the restoring was started and before its first step."""
    driver = FakeDriver(DriverContext(tmp_path))
    fleet = await driver.provision("r1", [HostSpec(name="web-01")])
    journal = Journal.__new__(Journal)  # never asked: the restoring does not come to begin
    giving = asyncio.create_task(give_back(driver, fleet, journal))
    for _ in range(cancels):
        await asyncio.sleep(0)
        giving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await giving
    await asyncio.sleep(0)
    assert fleet.released
