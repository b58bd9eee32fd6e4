"""Why a command may not run, or not any longer; and the time that it has."""

from __future__ import annotations

import asyncio

from opsdrill.agents.gateway.watch import Lasts
from opsdrill.hosts.session import Session
from opsdrill.model.job import Outcome

FORBIDDEN = 126
"""The exit status for what may not be run, as shells have it."""
LATE = 124
"""The exit status for what was killed at its time limit, as `timeout` has it."""


class Stopped(Exception):
    """A command may not run, or not any longer.

    Args:
        outcome: what is recorded.
        why: what is recorded as its output.
        status: the client's exit status.
        told: what the client is told.
    """

    def __init__(self, outcome: Outcome, why: str, status: int, told: str) -> None:
        super().__init__(why)
        self.outcome = outcome
        self.why = why
        self.status = status
        self.told = told


def refused(why: str) -> str:
    """What a client is told of a command that may not run."""
    return f"refused, not run: {why}"


class TimeLimit:
    """The time that one session has.

    Args:
        session: is killed when it is over.
        seconds: the time limit of a command; None: there is none.
        lasts: how long it may last.
        no_more: set at the end of its input.

    Attributes:
        reached: the time is over; whatever became of the session came of that.
    """

    def __init__(
        self, session: Session, seconds: float | None, lasts: Lasts, no_more: asyncio.Event
    ) -> None:
        self._session = session
        self._seconds = seconds
        self._lasts = lasts
        self._no_more = no_more
        self.reached = False

    async def run_out(self) -> None:
        """Wait until the session has lasted for too long, then kill it.

        Raises:
            Stopped: it was killed.
        """
        if self._seconds is None or self._lasts == "job":
            await asyncio.Event().wait()
            return
        if self._lasts == "input":
            await self._no_more.wait()
        await asyncio.sleep(self._seconds)
        self.reached = True
        why = f"killed after {self._seconds:g} s{_with_all(await self._session.kill())}"
        raise Stopped("timed_out", why, LATE, f"{why}: that is the time limit of a command")


def _with_all(left: int | None) -> str:
    if left is None:
        return "; whether all that it started was killed is not known"
    more = f"; {left} processes that it started could not be killed"
    return more if left else " with everything it started"
