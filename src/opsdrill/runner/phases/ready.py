"""Ready: proof that the fault is really there, before the agent sees the ticket."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import partial

from opsdrill.errors import NotReady
from opsdrill.hosts.driver import Host
from opsdrill.model.host import Command, HostAnswer
from opsdrill.model.scenario import ReadyCheck, Scenario
from opsdrill.runner.phases.steps import ask, outcome, tail

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 0.5
SHORTEST_TRY = 1.0
"""Seconds that even the last try is given, so that a slow answer is not cut off by the clock."""


def _unheard(_line: str) -> None:
    pass


async def ready(
    scenario: Scenario,
    hosts: Mapping[str, Host],
    answers: list[HostAnswer],
    tell: Callable[[str], None] = _unheard,
) -> None:
    """Ask each check, again and again for up to its `within` seconds, until it holds.

    Only the last answer of a check is noted; `tell` hears which one is waited for.

    Raises:
        NotReady: names the first check that did not come to hold, and how it ended last.
        HostError: a host does not answer.
    """
    for number, check in enumerate(scenario.ready, start=1):
        on = scenario.host_of(check.on)
        what = f"ready check {number} on {on}"
        told = partial(tell, f"waits up to {check.within:g} s for {what}")
        answer = await _poll(
            check, scenario.limits.command_seconds, hosts[on], what, answers=answers, late=told
        )
        if not holds(check, answer):
            wanted = "anything but 0" if check.fails else str(check.exit_code or 0)
            raise NotReady(
                f"{what} does not hold after {check.within:g} s: it {outcome(answer)},"
                f" and {wanted} is right{tail(answer)}",
                hint="the fault does not show, so the drill would prove nothing; see `setup`",
            )


async def _poll(
    check: ReadyCheck,
    command_seconds: float,
    host: Host,
    what: str,
    *,
    answers: list[HostAnswer],
    late: Callable[[], None],
) -> HostAnswer:
    end = time.monotonic() + check.within
    pause = FIRST_PAUSE
    while True:
        timeout = min(command_seconds, max(end - time.monotonic(), SHORTEST_TRY))
        command = Command(run=check.run, user=check.user or "root", timeout=timeout)
        tried: list[HostAnswer] = []
        try:
            answer = await ask(host, command, tried, what)
            left = end - time.monotonic()
            if holds(check, answer) or left <= 0:
                return answer
            tried.clear()
        finally:
            answers.extend(tried)
        await asyncio.sleep(min(pause, left))
        if pause < LONGEST_PAUSE <= 2 * pause:  # not for a moment only
            late()
        pause = min(2 * pause, LONGEST_PAUSE)


def holds(check: ReadyCheck, answer: HostAnswer) -> bool:
    """Whether the answer is the proof; a time-out is no exit status and proves nothing."""
    if answer.exit_code is None:
        return False
    return answer.exit_code != 0 if check.fails else answer.exit_code == (check.exit_code or 0)
