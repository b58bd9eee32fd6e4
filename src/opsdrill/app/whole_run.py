"""Everything that is kept of one run beside its record, for whoever looks at all of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from opsdrill.app.history import there, unfinished, waiting_runs
from opsdrill.app.own_folders import own_folders, told_phase, told_result, without_paths
from opsdrill.app.wiring import Place
from opsdrill.model.host import ChangedFile, HostAnswer, HostFacts
from opsdrill.model.job import JobRecord
from opsdrill.model.result import PHASES, Phase, Result
from opsdrill.store.store import Store, StoredGrade, StoredRun

N = TypeVar("N", int, float)


@dataclass(frozen=True, slots=True)
class WholeRun:
    """One run; its sentences name no folder of this machine."""

    run: StoredRun
    result: Result
    phases: tuple[Phase, ...]
    grades: tuple[StoredGrade, ...] = ()
    hosts: tuple[tuple[HostFacts, tuple[ChangedFile, ...] | None], ...] = ()
    answers: tuple[HostAnswer, ...] = ()
    steps: Mapping[str, tuple[HostAnswer, ...]] = field(default_factory=dict)
    waits_for: str | None = None

    @property
    def going(self) -> bool:
        """It is not over."""
        return not self.run.over


def whole_run(place: Place, store: Store, run: str) -> WholeRun:
    """A run by its whole id. Raises NotThere."""
    names = own_folders(place)
    with there(run):
        kept = store.get(run)
        waits = waiting_runs(store).get(run) if kept.state == "running" else None
        steps = {phase: tuple(store.steps(run, phase)) for phase in PHASES}
        return WholeRun(
            kept,
            told_result(kept.result or unfinished(kept.spec, kept.state), names),
            tuple(told_phase(phase, names) for phase in kept.phases),
            tuple(store.grades(run)),
            tuple(store.hosts(run)),
            tuple(store.answers(run)),
            {phase: answers for phase, answers in steps.items() if answers},
            without_paths(waits, names) if waits else None,
        )


@dataclass(frozen=True, slots=True)
class Used:
    """What a job used up; None: nobody said."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    models: tuple[str, ...] = ()

    @property
    def tokens(self) -> int | None:
        known = [count for count in (self.input_tokens, self.output_tokens) if count is not None]
        return sum(known) if known else None


def used(record: JobRecord) -> Used:
    """The sum over the job and its tasks, as far as it was told."""
    every = [record.job.usage if record.job else None, *(task.usage for task in record.tasks)]
    told = [usage for usage in every if usage is not None]
    return Used(
        _sum([usage.input_tokens for usage in told]),
        _sum([usage.output_tokens for usage in told]),
        _sum([usage.cost_usd for usage in told]),
        tuple(dict.fromkeys(usage.model for usage in told if usage.model)),
    )


def _sum(counts: Iterable[N | None]) -> N | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
