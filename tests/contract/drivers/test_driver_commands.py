"""How commands run: the same on every driver. Each test is a check of the shipped suite."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from opsdrill.hosts.conformance import CHECKS, examine_one
from opsdrill.hosts.driver import Driver, DriverContext
from opsdrill.hosts.drivers.sandbox.driver import SandboxDriver
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


@pytest.mark.parametrize(
    "driver_name",
    ["container", "container of sh only", "local", "sandbox", "ssh", "ssh to sh only"],
)
async def test_killing_its_group_ends_the_command_alone(driver: Driver) -> None:
    """A command that kills its process group is killed by signal 9 and so ends with 137, always;
    what it had printed is there."""
    async with await driver.provision("killed", [HostSpec(name="web-01")]) as fleet:
        host = fleet.hosts["web-01"]
        for user in ("root", "root", "root", "nobody"):
            run = "echo before; sleep 30 & kill -9 0; exit 3"
            answer = await host.run(Command(run=run, timeout=20, user=user))
            assert (answer.exit_code, answer.stdout) == (137, "before\n"), answer
            answer = await host.run(Command(run="kill 0; sleep 9", timeout=20, user=user))
            assert answer.exit_code == 143, answer


@pytest.mark.parametrize("driver_name", ["ssh", "ssh to sh only"])
async def test_kill_everything_over_ssh_is_dropped(driver: Driver) -> None:
    """The SSH server is among the killed, so that nobody is left to tell a status."""
    async with await driver.provision("killed", [HostSpec(name="web-01")]) as fleet:
        host = fleet.hosts["web-01"]
        answer = await host.run(Command(run="kill -9 -1; sleep 1; exit 6", timeout=20))
        assert answer.dropped, answer


async def test_signals_ignored_where_it_was_started(tmp_path: Path) -> None:
    """What the shell that started OpsDrill had it ignore is not ignored by a sandbox's commands."""
    [check] = [check for check in CHECKS if check.id == "shells.no-signal-is-ignored"]
    numbers = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    driver = SandboxDriver(DriverContext(tmp_path, {"size": "32M"}))
    try:
        outcome = await examine_one(check, driver, [HostSpec(name="web-01")])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        await driver.close()
    assert outcome.result == "passed", outcome.seen
