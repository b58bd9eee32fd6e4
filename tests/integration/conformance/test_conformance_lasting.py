"""The shipped suite on machines that last: nothing is broken there, and nothing is left."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration import sshd

from opsdrill.hosts.conformance import CHECKS, examine
from opsdrill.hosts.driver import DriverContext
from opsdrill.hosts.drivers.ssh.driver import SshDriver
from opsdrill.model.scenario import HostSpec

TWO = (HostSpec(name="web-01"), HostSpec(name="db-01"))


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[list[sshd.Machine]]:
    if reason := sshd.why_not():
        pytest.skip(reason)
    with sshd.rig(tmp_path) as rig:
        yield rig.machines([spec.name for spec in TWO])


FILES = r"""
for folder in etc home root run srv tmp var/tmp dev/shm; do
  find /$folder -type d -printf '%p %m %u\n' -o -printf '%p %s %m %u %T@\n'
done
"""


def files(machine: sshd.Machine) -> set[str]:
    """Its files with size, mode, owner and time of change; of folders mode and owner."""
    return set(machine.enter(FILES).splitlines())


def processes(machine: sshd.Machine) -> set[int]:
    """What runs there, but for SSH servers, which end in their own time."""
    return set(machine.processes("")) - set(machine.processes("sshd"))


async def none_but(machine: sshd.Machine, known: set[int]) -> None:
    """Wait until nothing runs there that did not run before."""
    for _ in range(100):
        if processes(machine) <= known:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"{machine.name}: left running: {processes(machine) - known}")


async def test_machines_that_last_are_as_before(
    machines: list[sshd.Machine], tmp_path: Path
) -> None:
    """Every check that may be tried there holds; no file and no process of it stays."""
    inventory = {machine.name: machine.lab() for machine in machines}
    driver = SshDriver(DriverContext(tmp_path, hosts=inventory))
    for machine in machines:
        machine.enter(": > /srv/of-the-machine")
    before = [(files(machine), processes(machine)) for machine in machines]
    outcomes = await examine(driver, TWO)
    await driver.close()
    assert [outcome for outcome in outcomes if outcome.result == "failed"] == []
    assert {outcome.check.id for outcome in outcomes if outcome.result == "not applicable"} == {
        check.id for check in CHECKS if "throw-away" in check.needs
    }
    for machine, (there, running) in zip(machines, before, strict=True):
        assert files(machine) ^ there == set()
        await none_but(machine, running)
