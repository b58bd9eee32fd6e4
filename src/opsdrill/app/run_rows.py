"""A run as a listing shows it: as a row, and as a value for programs."""

from __future__ import annotations

from dataclasses import fields

from opsdrill.model.result import Fraction
from opsdrill.store.store import RunRow, StoredRun


def row_value(row: RunRow) -> dict[str, object]:
    """A row for programs."""
    values: dict[str, object] = {part.name: getattr(row, part.name) for part in fields(row)}
    for name in ("compliance", "remediation"):
        pair = getattr(row, name)
        values[name] = {"passed": pair[0], "total": pair[1]} if pair else None
    return values


def row_of(run: StoredRun) -> RunRow:
    """The row of a run that was read whole."""
    spec, result = run.spec, run.result
    return RunRow(
        id=spec.id,
        batch=spec.batch,
        scenario=spec.scenario.key,
        title=spec.scenario.title,
        agent=str(spec.agent),
        lab=spec.lab.name,
        repeat=spec.repeat,
        state=run.state,
        verdict=result.verdict if result else None,
        fault=result.fault if result else None,
        reason=result.reason if result else "",
        compliance=_pair(result.compliance if result else None),
        remediation=_pair(result.remediation if result else None),
        after_agent=result.after_agent if result else False,
        created_at=run.created_at,
        ended_at=run.ended_at,
    )


def _pair(fraction: Fraction | None) -> tuple[int, int] | None:
    return (fraction.passed, fraction.total) if fraction else None
