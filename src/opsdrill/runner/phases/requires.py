"""What the scenario requires of its hosts, asked before the agent starts.

A host that lacks a command would otherwise look like an agent that could not work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from opsdrill.errors import HostError, RequirementMissing
from opsdrill.hosts.command import SYSTEMD, missing_programs
from opsdrill.hosts.driver import Host
from opsdrill.model.host import Command, HostAnswer
from opsdrill.model.lab import ROOT
from opsdrill.model.scenario import Scenario
from opsdrill.runner.phases.steps import ask, on_each, outcome, tail

OTHER_USER = "nobody"


def _root(_host: str) -> str:
    return ROOT


async def requires(
    scenario: Scenario,
    hosts: Mapping[str, Host],
    answers: list[HostAnswer],
    user_of: Callable[[str], str] = _root,
) -> None:
    """Ask every host for what the scenario requires of it.

    Args:
        answers: gets what the hosts answered.
        user_of: who asks on a host.

    Raises:
        RequirementMissing: names the host and everything it lacks.
        HostError: a host could not be asked.
    """

    async def look(name: str) -> tuple[str, list[str]]:
        return name, await _lacking(scenario, hosts[name], name, answers, user_of(name))

    for name, lacking in await on_each(scenario.host_names, look):
        if lacking:
            raise RequirementMissing(
                f"host {name} lacks {', '.join(lacking)}, which the scenario requires;"
                " the agent was not started and is not to blame",
                hint="use an image or a driver that has it, or take it out of `requires`",
            )


async def _lacking(
    scenario: Scenario, host: Host, name: str, answers: list[HostAnswer], user: str
) -> list[str]:
    wanted = scenario.requires
    programs = dict.fromkeys((*wanted.commands, *wanted.by_host.get(name, ())))
    limit = scenario.limits.command_seconds
    lacking = []
    if programs:
        command = Command(run=missing_programs(tuple(programs)), user=user, timeout=limit)
        answer = await ask(host, command, answers, "the check of `requires`")
        if answer.exit_code != 0:
            raise HostError(name, f"the check of `requires` {outcome(answer)}{tail(answer)}")
        lacking += [line for line in answer.stdout.splitlines() if line in programs]
    if wanted.systemd:
        command = Command(run=SYSTEMD, user=user, timeout=limit)
        answer = await ask(host, command, answers, "the check for systemd")
        if answer.exit_code != 0:
            lacking.append("systemd")
    if wanted.users and not await _has_users(host, limit, answers):
        lacking.append("users other than root")
    return lacking


async def _has_users(host: Host, limit: float, answers: list[HostAnswer]) -> bool:
    # No answer as another user, on a host that just answered root, is an answer here.
    answer = await host.run(Command(run="id -u", user=OTHER_USER, timeout=limit))
    answers.append(answer)
    return answer.exit_code == 0 and answer.stdout.strip() not in ("", "0")
