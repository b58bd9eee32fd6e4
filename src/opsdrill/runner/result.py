"""The result of a run, made from its grade or from what stopped it."""

from __future__ import annotations

from dataclasses import dataclass

from opsdrill.errors import Fault, OpsDrillError
from opsdrill.model.result import Grade, Phase, Result, RunState
from opsdrill.model.run import RunSpec


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a run could not be graded, and whose fault that was. Never the agent's."""

    reason: str
    fault: Fault

    @classmethod
    def of(cls, error: Exception, phase: str | None) -> Stop:
        """What an exception means for the run; one that nobody raised on purpose is ours."""
        if isinstance(error, OpsDrillError):
            return cls(str(error), error.fault)
        where = f" in the phase {phase}" if phase else ""
        kind = type(error).__name__
        return cls(f"OpsDrill itself failed{where}: {kind}: {error}".rstrip(": "), "opsdrill")


def graded(
    spec: RunSpec, grade: Grade, *, phases: tuple[Phase, ...] = (), warnings: tuple[str, ...] = ()
) -> Result:
    """The result of a run that came to its end and was graded."""
    return Result(
        run=spec.id,
        scenario=spec.scenario.key,
        agent=str(spec.agent),
        scenario_version=spec.scenario_version,
        state="done",
        phases=phases,
        warnings=warnings,
    ).under(grade)


def stopped(
    spec: RunSpec,
    stop: Stop,
    *,
    phases: tuple[Phase, ...] = (),
    warnings: tuple[str, ...] = (),
    after_agent: bool = False,
) -> Result:
    """The result of a run that ended in `error` before it could be graded."""
    return Result(
        run=spec.id,
        scenario=spec.scenario.key,
        agent=str(spec.agent),
        scenario_version=spec.scenario_version,
        state="done",
        verdict="error",
        reason=stop.reason,
        fault=stop.fault,
        after_agent=after_agent,
        phases=phases,
        warnings=warnings,
    )


def broken_off(
    spec: RunSpec,
    state: RunState,
    reason: str,
    *,
    phases: tuple[Phase, ...] = (),
    warnings: tuple[str, ...] = (),
) -> Result:
    """The result of a run that somebody stopped (`cancelled`) or that lost its process
    (`interrupted`): it has no verdict."""
    return Result(
        run=spec.id,
        scenario=spec.scenario.key,
        agent=str(spec.agent),
        scenario_version=spec.scenario_version,
        state=state,
        reason=reason,
        fault="operator" if state == "cancelled" else None,
        phases=phases,
        warnings=warnings,
    )
