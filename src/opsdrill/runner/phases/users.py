"""Who commands run as where a step says nothing: root, unless the lab says otherwise."""

from __future__ import annotations

from typing import TypeVar

from opsdrill.model.lab import ROOT
from opsdrill.model.run import RunSpec
from opsdrill.model.scenario import ReadyCheck, Scenario, Step

S = TypeVar("S", Step, ReadyCheck)


def as_lab_says(spec: RunSpec) -> Scenario:
    """The run's scenario with the lab's user in every step that names none."""
    scenario, lab = spec.scenario, spec.lab
    if all(lab.user_of(name) == ROOT for name in scenario.host_names):
        return scenario

    def named(steps: tuple[S, ...]) -> tuple[S, ...]:
        return tuple(
            step
            if step.user is not None
            else step.model_copy(update={"user": lab.user_of(scenario.host_of(step.on))})
            for step in steps
        )

    return scenario.model_copy(
        update={
            "setup": named(scenario.setup),
            "ready": named(scenario.ready),
            "reference": named(scenario.reference),
            "restore": named(scenario.restore),
        }
    )
