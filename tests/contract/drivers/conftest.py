"""The drivers that must keep the contract. Another one is one line here.

The tests are plain functions of a `Host` or a `Fleet`, written against the protocols only.
`host` and `fleet` come from drivers that really run commands; `any_host` and `any_fleet` also from
those that answer from a script.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from opsdrill.hosts.driver import Driver, DriverContext, Fleet, Host
from opsdrill.hosts.drivers.fake import FakeDriver
from opsdrill.hosts.drivers.fake_script import FakeScript
from opsdrill.hosts.drivers.sandbox.driver import SandboxDriver
from opsdrill.model.scenario import HostSpec

SCRIPT = FakeScript.model_validate(
    {
        "answers": [
            {"run": "true", "exit_code": 0},
            {"run": "exit 3", "exit_code": 3},
            {"run": "echo out; echo err >&2", "exit_code": 0, "stdout": "out\n", "stderr": "err\n"},
            {"run": "sleep 9999", "exit_code": 0, "delay": 9999},
            {
                "run": "head -c 3000000 /dev/zero | tr '\\0' x",
                "exit_code": 0,
                "stdout": "x" * 3_000_000,
            },
        ]
    }
)
RUNNING: dict[str, Callable[[Path], Driver]] = {
    "sandbox": lambda state: SandboxDriver(DriverContext(state, {"size": "32M"})),
}
ALL: dict[str, Callable[[Path], Driver]] = {
    **RUNNING,
    "fake": lambda state: FakeDriver(DriverContext(state), SCRIPT),
}
TWO = (HostSpec(name="web-01"), HostSpec(name="db-01"))


@pytest.fixture(scope="session")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Driver]]:
    made = {name: make(tmp_path_factory.mktemp(name)) for name, make in ALL.items()}
    yield made
    for driver in made.values():
        asyncio.run(driver.close())


@pytest.fixture(params=sorted(RUNNING))
def driver(request: pytest.FixtureRequest, drivers: dict[str, Driver]) -> Driver:
    return drivers[request.param]


@pytest.fixture(params=sorted(ALL))
def any_driver(request: pytest.FixtureRequest, drivers: dict[str, Driver]) -> Driver:
    return drivers[request.param]


@pytest_asyncio.fixture
async def host(driver: Driver) -> AsyncIterator[Host]:
    async with await driver.provision("contract", TWO[:1]) as fleet:
        yield fleet.hosts["web-01"]


@pytest_asyncio.fixture
async def fleet(driver: Driver) -> AsyncIterator[Fleet]:
    async with await driver.provision("contract", TWO) as fleet:
        yield fleet


@pytest_asyncio.fixture
async def any_host(any_driver: Driver) -> AsyncIterator[Host]:
    async with await any_driver.provision("contract", TWO[:1]) as fleet:
        yield fleet.hosts["web-01"]


@pytest_asyncio.fixture
async def any_fleet(any_driver: Driver) -> AsyncIterator[Fleet]:
    async with await any_driver.provision("contract", TWO) as fleet:
        yield fleet
