"""Runs, batches and what is kept of them, as the bodies that tell them."""

from __future__ import annotations

from collections.abc import Sequence

from opsdrill.app.evidence_items import Item
from opsdrill.app.own_folders import told_phase, told_result, told_row, without_paths
from opsdrill.app.run_rows import row_value
from opsdrill.evidence.stories import Differences
from opsdrill.model.result import Fraction
from opsdrill.model.run import RunSpec
from opsdrill.store.store import BatchRow, RunRow, StoredGrade, StoredRun
from opsdrill.wire.batches import BatchTold
from opsdrill.wire.runs import (
    ClaimTold,
    DifferencesTold,
    EvidenceItem,
    FractionTold,
    GradeTold,
    RunDetail,
    RunTold,
)

PARTS = (
    "results", "grades", "evidence", "differences", "record", "files", "phases", "hosts",
    "scenario", "events",
)  # fmt: skip
"""What a run's own address is followed by."""


def run_told(row: RunRow, folders: Sequence[str]) -> RunTold:
    return RunTold.model_validate(row_value(told_row(row, folders)))


def planned_told(spec: RunSpec) -> RunTold:
    """A run that was planned just now."""
    return RunTold(
        id=spec.id,
        batch=spec.batch,
        scenario=spec.scenario.key,
        title=spec.scenario.title,
        agent=str(spec.agent),
        lab=spec.lab.name,
        repeat=spec.repeat,
        state="planned",
        created_at=spec.created_at,
    )


def run_detail(
    run: StoredRun, waits_for: str | None, address: str, folders: Sequence[str]
) -> RunDetail:
    result = told_result(run.result, folders) if run.result else None
    return RunDetail(
        **run_told(run.row(), folders).model_dump(),
        labels=dict(run.spec.labels),
        scenario_version=result.scenario_version if result else run.spec.scenario_version,
        attempt=run.attempt,
        started_at=run.started_at,
        phases=[told_phase(phase, folders) for phase in run.phases],
        waits_for=without_paths(waits_for, folders) if waits_for else None,
        warnings=list(result.warnings) if result else [],
        links={part: f"{address}/{part}" for part in PARTS},
    )


def differences_told(found: Differences | None) -> DifferencesTold:
    if found is None:
        return DifferencesTold(by=None, never_run=[], not_reported=[])

    def claims(calls: tuple[tuple[str, object], ...]) -> list[ClaimTold]:
        return [ClaimTold.model_validate({"host": h, "call": _plain(c)}) for h, c in calls]

    return DifferencesTold(
        by=found.by, never_run=claims(found.never_run), not_reported=claims(found.not_reported)
    )


def _plain(call: object) -> object:
    dump = getattr(call, "model_dump", None)
    return dump() if dump else call


def fraction_told(fraction: Fraction | None) -> FractionTold | None:
    return FractionTold(passed=fraction.passed, total=fraction.total) if fraction else None


def grade_told(kept: StoredGrade) -> GradeTold:
    grade = kept.grade
    return GradeTold(
        number=kept.number,
        cause=kept.cause,
        by=kept.by,
        created_at=kept.created_at,
        scenario_version=grade.scenario_version,
        verdict=grade.verdict,
        reason=grade.reason,
        fault=grade.fault,
        compliance=fraction_told(grade.compliance),
        remediation=fraction_told(grade.remediation),
    )


def item_told(item: Item) -> EvidenceItem:
    return EvidenceItem(
        number=item.number,
        kind=item.kind,
        task=item.task,
        host=item.host,
        turn=item.turn,
        at=item.at,
        content=item.content,
        cut=item.cut,
    )


def batch_told(row: BatchRow) -> BatchTold:
    return BatchTold(
        id=row.id,
        created_at=row.created_at,
        runs=row.runs,
        states={str(state): count for state, count in row.states.items()},
        verdicts={str(verdict): count for verdict, count in row.verdicts.items()},
        scenarios=list(row.scenarios),
        agents=list(row.agents),
        by=row.by,
    )
