"""Restore: bring a lasting host back to what it was."""

from __future__ import annotations

from collections.abc import Mapping

from opsdrill.errors import HostError
from opsdrill.hosts.driver import Host
from opsdrill.model.host import Command, HostAnswer
from opsdrill.model.scenario import Scenario
from opsdrill.runner.phases.steps import ask, outcome, tail


async def restore(
    scenario: Scenario, hosts: Mapping[str, Host], answers: list[HostAnswer]
) -> list[str]:
    """Run every restore step, whatever became of those before it.

    Returns:
        One sentence for each step that did not end as it should.
    """
    wrong = []
    for number, step in enumerate(scenario.restore, start=1):
        on = scenario.host_of(step.on)
        what = f"restore step {number} on {on}"
        timeout = step.timeout if step.timeout is not None else scenario.limits.command_seconds
        command = Command(run=step.run, user=step.user or "root", timeout=timeout)
        try:
            answer = await ask(hosts[on], command, answers, what)
        except HostError as error:
            wrong.append(str(error))
            continue
        if answer.exit_code != step.exit_code:
            wrong.append(f"{what} {outcome(answer)} instead of {step.exit_code}{tail(answer)}")
    return wrong
