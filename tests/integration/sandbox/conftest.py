"""Sandbox hosts for tests that try to break their promises from inside."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from opsdrill.hosts.driver import DriverContext
from opsdrill.hosts.drivers.sandbox.driver import SandboxDriver
from opsdrill.hosts.drivers.sandbox.host import SandboxHost
from opsdrill.model.scenario import HostSpec

OPTIONS = {"size": "16M", "processes": "64", "memory": "256M"}


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxDriver]:
    made = SandboxDriver(DriverContext(tmp_path_factory.mktemp("sandbox"), OPTIONS))
    yield made
    asyncio.run(made.close())


@pytest_asyncio.fixture
async def host(driver: SandboxDriver) -> AsyncIterator[SandboxHost]:
    async with await driver.provision("isolation", [HostSpec(name="web-01")]) as fleet:
        yield fleet.hosts["web-01"]
