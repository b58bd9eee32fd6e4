"""OpsDrill's ssh driver, asked by the validate phase: in order on a host, hosts side by side.

With `at-once` as the third argument also all checks of a host at the same time.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.hosts_peers.task import Task, main

from opsdrill.hosts.driver import DriverContext, Host
from opsdrill.hosts.drivers.ssh.driver import SshDriver
from opsdrill.model.host import Command, HostAnswer
from opsdrill.model.lab import LabHost
from opsdrill.model.scenario import Scenario
from opsdrill.runner.phases.validate import ask_hosts


def scenario_of(task: Task) -> Scenario:
    rules = [
        {"validator": "host_state", "label": f"{host} {number}", "on": host, "run": check.run}
        for number, check in enumerate(task.checks)
        for host in task.hosts
    ]
    return Scenario.model_validate(
        {
            "key": "checks",
            "title": "Checks",
            "ticket_title": "Checks",
            "hosts": list(task.hosts),
            "validation": rules,
        }
    )


async def all_at_once(scenario: Scenario, hosts: Mapping[str, Host]) -> list[HostAnswer]:
    calls = []
    for rule in scenario.validation:
        assert rule.validator == "host_state"
        calls.append(hosts[rule.on or ""].run(Command(run=rule.run, timeout=60)))
    return await asyncio.gather(*calls)


async def work(task: Task) -> tuple[int, float]:
    scenario = scenario_of(task)
    machines = {
        name: LabHost(address=address, key=task.key, known_host=task.host_key)
        for name, address in task.hosts.items()
    }
    answers: list[HostAnswer] = []
    started = time.perf_counter()
    driver = SshDriver(DriverContext(Path("/nowhere"), hosts=machines))
    async with await driver.provision("checks", scenario.hosts) as fleet:
        if "at-once" in sys.argv:
            answers = await all_at_once(scenario, fleet.hosts)
        else:
            await ask_hosts(scenario, fleet.hosts, answers)
    passed = time.perf_counter() - started
    expected = [check for check in task.checks for _ in task.hosts]
    right = [
        check.holds(answer.exit_code, answer.stdout)
        for check, answer in zip(expected, answers, strict=True)
    ]
    return sum(right), passed


if __name__ == "__main__":
    main(lambda task: asyncio.run(work(task)))
