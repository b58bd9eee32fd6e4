"""Killing a command, and what is said where nobody knows whether that worked."""

from __future__ import annotations

import getpass
import os
import pwd

import pytest

from opsdrill.hosts.attempt import Attempt, Outcome
from opsdrill.hosts.command import BOOT, Account
from opsdrill.hosts.process_link import ProcessExchange, ProcessLink
from opsdrill.hosts.shell_link import ASK_SECONDS
from opsdrill.model.host import OUTPUT_LIMIT

SELF = Account(getpass.getuser(), os.getuid(), os.getgid(), pwd.getpwuid(os.getuid()).pw_dir)
DEAD = "kill -9 $$\n"
"""A line whose shell does not live to tell anything."""
NOT_KNOWN = "whether all that it started was killed is not known"


class FaultyLink(ProcessLink):
    """Shells of this machine, whose first lines of ours are changed on their way.

    Args:
        changes: what becomes of each of them: words that are replaced, and by what.
    """

    def __init__(self, *changes: tuple[str, str]) -> None:
        super().__init__(("/bin/sh", "-c", BOOT))
        self._changes = list(changes)
        self.talks = 0

    async def talk(
        self,
        nonce: str,
        content: bytes,
        *,
        seconds: float = ASK_SECONDS,
        limit: int = OUTPUT_LIMIT,
        urgent: bool = False,
    ) -> ProcessExchange:
        self.talks += 1
        if self._changes:
            old, new = self._changes.pop(0)
            content = content.replace(old.encode(), new.encode())
        return await super().talk(nonce, content, seconds=seconds, limit=limit, urgent=urgent)


async def late(link: ProcessLink, *, marks: bool = True) -> Outcome:
    """What becomes of a command that does not end in its time, but a little later."""
    try:
        attempt = Attempt(link, "bash", marks=marks)
        return await attempt.outcome(SELF, b"echo a; sleep 1.5", 0.3)
    finally:
        await link.close()


async def test_killed() -> None:
    """A killer that tells that nothing is left is believed."""
    outcome = await late(FaultyLink())
    assert outcome.timed_out
    assert outcome.reason == "killed after 0.3 s with everything it started"


BLIND = ("/proc/self/", "/nowhere/self/")
MUTE = ("echo $#", "sh -c 'kill -9 $PPID';:")


@pytest.mark.parametrize("change", [BLIND, MUTE], ids=["sees nothing", "is killed"])
async def test_killer_that_tells_nothing(change: tuple[str, str]) -> None:
    """Where no killer tells what is left, it is a time-out, and not said to be killed."""
    outcome = await late(FaultyLink(*[change] * 99))
    assert outcome.timed_out
    assert outcome.reason == f"no end within 0.3 s; {NOT_KNOWN}"


async def test_killer_is_asked_again() -> None:
    """A killer that was killed is followed by another one."""
    link = FaultyLink(("echo $#", ":"))
    outcome = await late(link)
    assert outcome.reason == "killed after 0.3 s with everything it started"
    assert link.talks >= 2


async def test_host_without_marks() -> None:
    """Where nothing can be marked, nothing is said to be killed."""
    outcome = await late(FaultyLink(), marks=False)
    assert outcome.timed_out
    assert NOT_KNOWN in (outcome.reason or "")


async def test_some_are_left() -> None:
    """How many could not be killed is told, and that all were is not."""
    outcome = await late(FaultyLink(*[("echo $#", "echo 3")] * 99))
    assert outcome.reason == "killed after 0.3 s; 3 processes that it started could not be killed"
