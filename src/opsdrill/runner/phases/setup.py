"""Setup: break the hosts, one step after the other."""

from __future__ import annotations

import time
from collections.abc import Mapping

from opsdrill.errors import SetupFailed
from opsdrill.hosts.driver import Host
from opsdrill.model.host import Command, HostAnswer
from opsdrill.model.scenario import Scenario
from opsdrill.runner.phases.steps import ask, outcome, tail


async def setup(scenario: Scenario, hosts: Mapping[str, Host], answers: list[HostAnswer]) -> None:
    """Run the setup steps in order.

    A step has its own time limit, `command_seconds` without one; all of them together have
    `setup_seconds`.

    Raises:
        SetupFailed: names the first step that did not end as it should, and how it ended.
        HostError: a host does not answer.
    """
    limits = scenario.limits
    end = time.monotonic() + limits.setup_seconds
    for number, step in enumerate(scenario.setup, start=1):
        on = scenario.host_of(step.on)
        what = f"setup step {number} on {on}"
        left = end - time.monotonic()
        if left <= 0:
            raise SetupFailed(
                f"{what} was not started: all steps together took more than the"
                f" {limits.setup_seconds:g} s of `setup_seconds`"
            )
        own = step.timeout if step.timeout is not None else limits.command_seconds
        command = Command(run=step.run, user=step.user or "root", timeout=min(own, left))
        answer = await ask(hosts[on], command, answers, what)
        if answer.timed_out:
            limit = (
                f"within its {own:g} s"
                if own <= left
                else f"before the {limits.setup_seconds:g} s of `setup_seconds` were over"
            )
            raise SetupFailed(f"{what} gave no exit status {limit}{tail(answer)}")
        if answer.exit_code != step.exit_code:
            raise SetupFailed(f"{what} {outcome(answer)} instead of {step.exit_code}{tail(answer)}")
