"""What a run keeps and tells while it goes: its phases, its warnings and what hosts answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, ParamSpec

from opsdrill.evidence.masked_spec import MaskedSpec
from opsdrill.model.host import HostAnswer
from opsdrill.model.result import Grade, Phase, PhaseName, Result
from opsdrill.model.run import RunSpec
from opsdrill.runner.archive import landed
from opsdrill.runner.engine import RunEvent
from opsdrill.runner.tools import RunTools

P = ParamSpec("P")


@dataclass(slots=True)
class PhaseNotes:
    """What a phase leaves behind, also when it fails half way.

    `answers` are what the hosts answered to the phase's own commands, in the order asked;
    `skipped` says why there was nothing to do.
    """

    answers: list[HostAnswer] = field(default_factory=list)
    skipped: str | None = None


class Journal:
    """The run's own account, kept in the store as it grows and published.

    `attempt` is 0 until the run began. `acted` says whether the agent had begun to act;
    `warnings` go into the result. Secrets in what is told and kept are masked here, so that
    reasons and warnings may be given as they come.

    Args:
        spec: the run.
        tools: what it works with.
        kept: the run as it is kept, and its mask.
    """

    def __init__(self, spec: RunSpec, tools: RunTools, kept: MaskedSpec) -> None:
        self.spec = spec
        self.kept = kept.spec
        self.mask = kept.mask
        self.attempt = 0
        self.acted = False
        self.warnings: list[str] = list(kept.warnings)
        self.store = tools.archive.store
        self.keep = tools.archive.keep
        self._tools = tools
        self._phases: dict[PhaseName, Phase] = {}
        self._landing: list[asyncio.Future[None]] = []

    async def begin(self) -> None:
        """Mark the run as running under this process; `attempt` is its number from then on.

        Raises:
            KeyError: the run was not planned in the store.
            UsageError: it is over, or it is running already.
        """
        tools = self._tools
        landing = tools.archive.submit(self.store.begin, self.spec.id, tools.owner)
        try:
            await landed(landing)
        finally:
            if landing.done() and landing.exception() is None:
                self.attempt = landing.result()

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases that began, in the order they did."""
        return tuple(self._phases.values())

    @property
    def warned(self) -> tuple[str, ...]:
        """The warnings so far."""
        return tuple(map(self.mask.text, self.warnings))

    @property
    def worked(self) -> PhaseName | None:
        """The phase that the run was in when it stopped: the last one before giving back."""
        names = [name for name in self._phases if name != "restore"]
        return names[-1] if names else None

    @asynccontextmanager
    async def phase(self, name: PhaseName) -> AsyncIterator[PhaseNotes]:
        """Record one phase: its start, its end, its outcome and what its hosts answered."""
        notes = PhaseNotes()
        started = self._tools.clock()
        self._record(Phase(name=name, status="running", started_at=started))
        try:
            yield notes
        except Exception as error:
            await self._end(name, started, "failed", notes, str(error) or type(error).__name__)
            raise
        except BaseException:
            await self._end(name, started, "interrupted", notes, None)
            raise
        status: Literal["skipped", "done"] = "skipped" if notes.skipped else "done"
        await self._end(name, started, status, notes, notes.skipped)

    async def _end(
        self,
        name: PhaseName,
        started: datetime,
        status: Literal["done", "failed", "skipped", "interrupted"],
        notes: PhaseNotes,
        reason: str | None,
    ) -> None:
        if notes.answers:
            answers = tuple(notes.answers)
            self.later(self.store.save_steps, self.spec.id, self.attempt, name, answers)
        ended = self._tools.clock()
        why = None if reason is None else self.mask.text(reason)
        self._record(
            Phase(name=name, status=status, started_at=started, ended_at=ended, reason=why)
        )
        # All is handed over before anything is waited for, so that no cancellation comes between.
        landing, self._landing = self._landing, []
        for write in landing:
            await landed(write)

    def _record(self, phase: Phase) -> None:
        self._phases[phase.name] = phase
        self._tools.publish(RunEvent(self.spec.id, phase=phase))
        self.later(self.store.phase, self.spec.id, self.attempt, phase)

    def tell(self, line: str) -> None:
        """Pass on what is under way in a phase."""
        self._tools.publish(RunEvent(self.spec.id, step=self.mask.text(line)))

    def later(self, call: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """Hand a write to the store; the end of the phase waits for it and raises its error."""
        self._landing.append(self._tools.archive.submit(call, *args, **kwargs))

    async def finish(self, result: Result, grade: Grade | None) -> None:
        """The run is over: keep its result, then tell it, so that who hears of it can read it."""
        landing = self._tools.archive.submit(self.store.finish, self.spec.id, result, grade)
        try:
            await landed(landing)
        finally:
            if landing.done() and landing.exception() is None:
                self._tools.publish(RunEvent(self.spec.id, result=result))
