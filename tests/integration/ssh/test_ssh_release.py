"""Machines that last, given back while commands run there: nothing of these works on."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from tests.integration.own_machine import local_driver
from tests.integration.sshd import Machine, Rig, host_of

from opsdrill.hosts.driver import Host
from opsdrill.model.host import Command, HostAnswer
from opsdrill.model.scenario import HostSpec

BOUND = 60.0
"""Seconds in which giving back ends, whatever the machine does."""
TREE = "echo before; (setsid sh -c '(sleep 9753 &) ; exit' &); trap '' TERM HUP; sleep 9753"
HostOf = Callable[[Machine], AbstractAsyncContextManager[Host]]


def over_ssh(machine: Machine) -> AbstractAsyncContextManager[Host]:
    return host_of(machine.lab())


@asynccontextmanager
async def by_itself(machine: Machine) -> AsyncIterator[Host]:
    driver = local_driver(machine, Path("/nowhere"))
    async with await driver.provision("run", [HostSpec(name="web-01")]) as fleet:
        yield fleet.hosts["web-01"]


LASTING = pytest.mark.parametrize("lasting", [over_ssh, by_itself], ids=["ssh", "local"])


def sleeping(machine: Machine) -> int:
    return len(machine.processes("sleep 9753"))


async def at_work(machine: Machine, calls: list[asyncio.Task[HostAnswer]], sleepers: int) -> None:
    """Wait until the commands are in the middle of their work."""
    async with asyncio.timeout(BOUND):
        while sleeping(machine) < sleepers:
            assert not any(call.done() for call in calls)
            await asyncio.sleep(0.05)


@LASTING
async def test_commands_are_killed(machine: Machine, lasting: HostOf) -> None:
    """What runs when a host is given back is killed with everything it started, by any user; its
    call has no answer, and says why."""
    async with lasting(machine) as host:
        await host.run(Command(run="nohup sleep 8642 >/dev/null 2>&1 &"))
        users = ["root", "root", "root", "plain"]
        calls = [asyncio.ensure_future(host.run(Command(run=TREE, user=user))) for user in users]
        await at_work(machine, calls, 2 * len(users))
    assert sleeping(machine) == 0
    for call in calls:
        answer = await call
        assert answer.unreachable
        assert answer.reason == "the host was given back before the command was over"
    # What an earlier command left in the background is not ours to end.
    assert len(machine.processes("sleep 8642")) == 1


@LASTING
async def test_cancelled_and_given_back(machine: Machine, lasting: HostOf) -> None:
    """A run that is cancelled cancels its calls and gives its hosts back: all at once is well."""
    async with lasting(machine) as host:
        calls = [asyncio.ensure_future(host.run(Command(run=TREE))) for _ in range(4)]
        await at_work(machine, calls, 8)
        for call in calls:
            call.cancel()
            call.cancel()
    async with asyncio.timeout(BOUND):
        await asyncio.wait(calls)
    assert all(call.cancelled() for call in calls)
    assert sleeping(machine) == 0


async def test_nothing_is_started_any_more(rig: Rig) -> None:
    """Commands that wait for their turn when a host is given back never begin."""
    machine = rig.machine(config="MaxSessions 2\n")
    async with host_of(machine.lab()) as host:
        run = "sleep 9753; echo x >> /srv/second"
        calls = [asyncio.ensure_future(host.run(Command(run=run))) for _ in range(6)]
        await at_work(machine, calls, 1)
    async with asyncio.timeout(BOUND):
        assert all(answer.unreachable for answer in await asyncio.gather(*calls))
    await asyncio.sleep(0.5)
    assert sleeping(machine) == 0
    assert machine.enter("ls /srv") == ""


async def test_machine_that_does_not_answer(machine: Machine) -> None:
    """Giving back ends in its bound where nobody can be asked to kill anything."""
    async with asyncio.timeout(BOUND):
        async with host_of(machine.lab()) as host:
            call = asyncio.ensure_future(host.run(Command(run=TREE)))
            await at_work(machine, [call], 2)
            machine.signal_sshd(signal.SIGSTOP)
        answer = await call
    assert answer.unreachable
    machine.signal_sshd(signal.SIGCONT)
