"""Planning: every scenario by every agent, as often as asked, as runs that need nothing further."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from opsdrill.agents.adapter import ADAPTERS
from opsdrill.evidence.mask import Mask
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec, StoredFile
from opsdrill.runner.phases.preflight import context_of
from opsdrill.runner.tools import new_run_id
from opsdrill.scenarios.load import LoadedScenario
from opsdrill.store.store import Store


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be run.

    Args:
        scenarios: at least one.
        agents: each works every scenario; at least one.
        lab: gives the hosts.
        repeat: how often each agent works each scenario.
        labels: of all runs.
    """

    scenarios: Sequence[LoadedScenario]
    agents: Sequence[AgentChoice]
    lab: LabChoice
    repeat: int = 1
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many runs it makes."""
        return len(self.scenarios) * len(self.agents) * self.repeat


def planned(plan: Plan, store: Store, mask: Mask) -> tuple[list[RunSpec], dict[str, bytes]]:
    """The runs of a plan, in one batch, and the support files that the store has masked only.

    Raises:
        InvalidInput: a support file changed, or an agent's file is broken.
        UsageError: an agent refuses its argument.
    """
    unmasked: dict[str, bytes] = {}
    batch, now = new_run_id(), datetime.now(UTC)
    specs: list[RunSpec] = []
    for loaded in plan.scenarios:
        first = RunSpec(
            id=new_run_id(),
            batch=batch,
            scenario=loaded.scenario,
            scenario_version=loaded.version,
            scenario_folder=str(loaded.folder.resolve()) if loaded.folder else None,
            files=_kept_files(loaded, store, mask, unmasked),
            agent=plan.agents[0],
            lab=plan.lab,
            labels=dict(plan.labels),
            created_at=now,
        )
        for agent in plan.agents:
            # A broken script is told before anything runs, not by an error in every run.
            ADAPTERS.get(agent.adapter)(context_of(first.model_copy(update={"agent": agent})))
            specs += [
                _again(first, agent, number + 1, len(specs) + number)
                for number in range(plan.repeat)
            ]
    return specs, unmasked


def _again(first: RunSpec, agent: AgentChoice, repeat: int, place: int) -> RunSpec:
    """The same run by an agent, once more; `place` keeps the order planned in listings."""
    return first.model_copy(
        update={
            "id": new_run_id(),
            "agent": agent,
            "repeat": repeat,
            "created_at": first.created_at + timedelta(microseconds=place),
        }
    )


def _kept_files(
    loaded: LoadedScenario, store: Store, mask: Mask, unmasked: dict[str, bytes]
) -> tuple[StoredFile, ...]:
    """The support files as hosts get them; those that were put away masked go into `unmasked`."""
    files = []
    for file in loaded.files.values():
        content = file.read()
        masked = mask.data(content)
        store.put_file(masked)
        if masked is not content:
            unmasked[file.digest] = content
        files.append(StoredFile(source=file.source, digest=file.digest, size=file.size))
    return tuple(files)
