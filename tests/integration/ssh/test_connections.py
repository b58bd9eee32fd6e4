"""How many connections a run takes, counted by the kernels of the machines that accept them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.integration.sshd import Machine, Rig

from opsdrill.hosts.driver import DriverContext, Host
from opsdrill.hosts.drivers.ssh.driver import SshDriver
from opsdrill.model.host import Command, HostAnswer
from opsdrill.model.scenario import Scenario
from opsdrill.runner.phases.validate import ask_hosts

HOSTS, RULES = 20, 200


def accepted(machine: Machine) -> int:
    """TCP connections accepted so far; only sshd listens there."""
    counts = Path(f"/proc/{machine.first}/net/snmp").read_text()
    names, values = (line.split() for line in counts.splitlines() if line.startswith("Tcp:"))
    return int(values[names.index("PassiveOpens")])


def scenario(names: list[str]) -> Scenario:
    rules = [
        {
            "validator": "host_state",
            "label": f"rule {number}",
            "on": names[number % HOSTS],
            "run": f"exit {number % 250}",
        }
        for number in range(RULES)
    ]
    return Scenario.model_validate(
        {
            "key": "many",
            "title": "Many",
            "ticket_title": "Many",
            "hosts": names,
            "validation": rules,
        }
    )


async def in_order(asked: Scenario, hosts: Mapping[str, Host]) -> list[HostAnswer]:
    answers: list[HostAnswer] = []
    await ask_hosts(asked, hosts, answers)
    return answers


async def all_at_once(asked: Scenario, hosts: Mapping[str, Host]) -> list[HostAnswer]:
    calls = []
    for rule in asked.validation:
        assert rule.validator == "host_state"
        calls.append(hosts[rule.on or ""].run(Command(run=rule.run, timeout=60)))
    return await asyncio.gather(*calls)


@pytest.mark.parametrize("ask", [in_order, all_at_once])
async def test_two_hundred_rules_over_twenty_hosts(rig: Rig, ask: object) -> None:
    """A run with 200 rules over 20 hosts opens one connection to each host, not 200."""
    machines = rig.machines([f"m-{number}" for number in range(HOSTS)])
    inventory = {machine.name: machine.lab() for machine in machines}
    driver = SshDriver(DriverContext(Path("/nowhere"), hosts=inventory))
    asked = scenario([machine.name for machine in machines])
    before = [accepted(machine) for machine in machines]
    async with await driver.provision("run", asked.hosts) as fleet:
        answers = await (in_order if ask is in_order else all_at_once)(asked, fleet.hosts)
    opened = [accepted(machine) - count for machine, count in zip(machines, before, strict=True)]
    assert opened == [1] * HOSTS
    assert [answer.exit_code for answer in answers] == [number % 250 for number in range(RULES)]
