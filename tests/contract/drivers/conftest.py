"""The drivers that must keep the contract. Another one is one line here.

The tests are plain functions of a `Host` or a `Fleet`, written against the protocols only.
`host` and `fleet` come from drivers that really run commands; `any_host` and `any_fleet` also from
those that answer from a script.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from opsdrill.hosts.driver import Driver, DriverContext, Fleet, Host
from opsdrill.hosts.drivers.fake import FakeDriver
from opsdrill.hosts.drivers.fake_script import FakeScript
from opsdrill.hosts.drivers.sandbox.driver import SandboxDriver
from opsdrill.model.scenario import HostSpec

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.integration import engines, images, own_machine, sshd

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
    "container": lambda state: engines.EngineDriver("podman", state, images.DEBIAN),
    "container of sh only": lambda state: engines.EngineDriver("docker", state, images.DASH),
    "local": lambda state: own_machine.OwnMachineDriver(sshd.Rig(state), state),
    "ssh": lambda state: sshd.RigDriver(sshd.Rig(state), state),
    "ssh to sh only": lambda state: sshd.RigDriver(sshd.Rig(state), state, "dash"),
}
WHY_NOT: dict[str, Callable[[], str | None]] = {
    "container": lambda: engines.why_not("podman"),
    "container of sh only": lambda: engines.why_not("docker"),
    "local": sshd.why_not,
    "ssh": sshd.why_not,
    "ssh to sh only": sshd.why_not,
}
"""Why a driver cannot be tried here; those not listed can."""
ALL: dict[str, Callable[[Path], Driver]] = {
    **RUNNING,
    "fake": lambda state: FakeDriver(DriverContext(state), SCRIPT),
}
TWO = (HostSpec(name="web-01"), HostSpec(name="db-01"))


@pytest.fixture(scope="session")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Driver]]:
    made: dict[str, Driver] = {}

    def get(name: str) -> Driver:
        if name not in made:
            if reason := WHY_NOT.get(name, lambda: None)():
                pytest.skip(reason)
            made[name] = ALL[name](tmp_path_factory.mktemp(name.replace(" ", "-")))
        return made[name]

    yield get
    for driver in made.values():
        asyncio.run(driver.close())


@pytest.fixture(params=sorted(RUNNING))
def driver(request: pytest.FixtureRequest, drivers: Callable[[str], Driver]) -> Driver:
    return drivers(request.param)


@pytest.fixture(params=sorted(ALL))
def any_driver(request: pytest.FixtureRequest, drivers: Callable[[str], Driver]) -> Driver:
    return drivers(request.param)


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
