"""Validate: ask the hosts what the rules ask, all of it, whatever became of the job."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from opsdrill.hosts.driver import Host
from opsdrill.model.host import Command, HostAnswer
from opsdrill.model.lab import ROOT
from opsdrill.model.rules import HostState
from opsdrill.model.scenario import Scenario
from opsdrill.runner.phases.steps import on_each


def _root(_host: str) -> str:
    return ROOT


async def ask_hosts(
    scenario: Scenario,
    hosts: Mapping[str, Host],
    answers: list[HostAnswer],
    user_of: Callable[[str], str] = _root,
) -> None:
    """Run the `host_state` commands: in array order on one host, hosts side by side.

    Args:
        answers: gets the answers in the order of the rules; those given so far when it is
            stopped half way. A silent host is an answer like any other here.
        user_of: who asks on a host.
    """
    checks = [
        (index, scenario.host_of(rule.on), rule.run)
        for index, rule in enumerate(scenario.validation)
        if isinstance(rule, HostState)
    ]
    given: dict[int, HostAnswer] = {}

    async def ask_one(name: str) -> None:
        for index, on, text in checks:
            if on == name:
                timeout = scenario.limits.command_seconds
                command = Command(run=text, user=user_of(name), timeout=timeout)
                given[index] = await hosts[name].run(command)

    try:
        await on_each(dict.fromkeys(on for _, on, _ in checks), ask_one)
    finally:
        answers.extend(given[index] for index in sorted(given))
