"""The engine protocol: who works off runs. In this process for now; a durable one follows.

Nothing above it may know which one it is: a run goes in as a plain `RunSpec`, what comes out are
plain stored values and `RunEvent`s.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from opsdrill.model.event import JobEvent
from opsdrill.model.result import Phase, Result, RunState
from opsdrill.model.run import RunSpec


@dataclass(frozen=True, slots=True)
class RunEvent:
    """Something happened in a run: exactly one of the optional fields is set.

    `step` is a line about what is under way inside a phase (`waiting for memory`).
    """

    run: str
    phase: Phase | None = None
    job: JobEvent | None = None
    step: str | None = None
    result: Result | None = None
    """The run is over; no event follows."""


class Engine(Protocol):
    async def submit(self, specs: Sequence[RunSpec], *, at_once: int | None = None) -> None:
        """Plan the runs in the store and work them off, as many at once as the engine allows.

        Submitting an id again is no error and changes nothing.

        Args:
            specs: the runs.
            at_once: how many runs of their batches work at the same time; None: no such limit.
        """

    async def cancel(self, run: str) -> bool:
        """Stop a run, giving its hosts back; False when it was over already.

        Raises:
            NotThere: there is no such run.
            Conflict: this engine does not work on it.
        """

    async def retry(self, run: str) -> str:
        """Plan the same run anew under a new id, which its label `retry_of` leads back from.

        Raises:
            NotThere: there is no such run.
            Conflict: it is not over yet, or cannot be planned from what was kept.
        """

    async def list(self) -> list[tuple[str, RunState]]:
        """The runs this engine knows that are not over, in the order submitted."""

    def subscribe(self, runs: Sequence[str] | None = None) -> AsyncIterator[RunEvent]:
        """What happens from now on, in these runs or in all; ends when all these are over.

        A run that is over already gives its result at once.
        """

    async def close(self, *, at_once: bool = False) -> None:
        """Stop starting, end what runs (its hosts are given back), and end the engine.

        With `at_once` hosts are not waited for; they are found again at the next start.
        """
