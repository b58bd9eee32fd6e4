"""The drivers that must keep the contract. Another one is one line here.

The contract is the shipped suite, `opsdrill.hosts.conformance`. A test module names the groups of
checks that it runs; each check is a test for each driver. Those that really run commands are tried
on all of it, those that answer from a script on what is for them.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from opsdrill.hosts.conformance import CHECKS, Check, examine_one
from opsdrill.hosts.driver import Driver, DriverContext
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
BEYOND = {("local", "terminals.terminal-has-a-name")}
"""What cannot be asked here: the tests' local machine has another /dev/pts than who asks."""
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


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "check" not in metafunc.fixturenames:
        return
    cases = [
        pytest.param(name, check, id=f"{name}-{check.id}")
        for check in CHECKS
        if check.group in metafunc.module.GROUPS
        for name in sorted(ALL if check.scripted else RUNNING)
        if (name, check.id) not in BEYOND
    ]
    metafunc.parametrize(("driver_name", "check"), cases)


@pytest.fixture
def driver(driver_name: str, drivers: Callable[[str], Driver]) -> Driver:
    return drivers(driver_name)


@pytest.fixture
def keeps(driver: Driver, check: Check) -> Callable[[], Awaitable[None]]:
    """Fails if the driver does not keep what the check says."""

    async def keeps() -> None:
        # Whatever they are called, all hosts here can be thrown away.
        outcome = await examine_one(check, driver, TWO, breakable=True)
        if outcome.result == "not applicable":
            pytest.skip(outcome.seen)
        assert outcome.result == "passed", f"{check.sentence}\n{outcome.seen}"

    return keeps
