"""Rows of the tables as the store's values, and back."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row

from opsdrill.model.result import PHASES, Grade, Phase, Result, RunState, Verdict
from opsdrill.model.run import RunSpec
from opsdrill.store.course import clipped, clipped_mark, pair
from opsdrill.store.cursor import microseconds, moment
from opsdrill.store.store import BatchRow, Owner, RunRow


def planned(spec: RunSpec) -> dict[str, object]:
    """The columns of a new run."""
    return {
        "id": spec.id,
        "batch": spec.batch,
        "scenario": spec.scenario.key,
        "title": clipped(spec.scenario.title),
        "agent": str(spec.agent),
        "lab": spec.lab.name,
        "repeat": spec.repeat,
        "state": "planned",
        "reason": "",
        "after_agent": False,
        "attempt": 0,
        "created_at": created_at(spec),
    }


def created_at(spec: RunSpec) -> int:
    return microseconds(spec.created_at)


def marks(spec: RunSpec) -> list[dict[str, object]]:
    """The labels of a run and the tags of its scenario, as rows without the run."""
    tags = sorted({clipped_mark(tag) for tag in spec.scenario.tags})
    found = [("label", name, value) for name, value in spec.labels.items()]
    found += [("tag", tag, "") for tag in tags]
    created = created_at(spec)
    return [
        {"kind": kind, "name": name, "value": value, "created_at": created}
        for kind, name, value in found
    ]


def batches(
    found: Sequence[Row[*tuple[Any, ...]]],
    counts: Sequence[Row[*tuple[Any, ...]]],
    scenarios: Sequence[Row[*tuple[Any, ...]]],
    agents: Sequence[Row[*tuple[Any, ...]]],
    starters: Sequence[Row[*tuple[Any, ...]]],
) -> tuple[BatchRow, ...]:
    """Batches with their runs, counted by state and verdict."""
    states: dict[str, Counter[RunState]] = defaultdict(Counter)
    verdicts: dict[str, Counter[Verdict]] = defaultdict(Counter)
    for row in counts:
        states[row.batch][row.state] += row.runs
        if row.verdict is not None:
            verdicts[row.batch][row.verdict] += row.runs
    by = {row.id: row.value for row in starters}
    keys, names = _values(scenarios), _values(agents)
    return tuple(
        BatchRow(
            id=row.id,
            created_at=moment(row.created_at),
            runs=states[row.id].total(),
            states=states[row.id],
            verdicts=verdicts[row.id],
            scenarios=tuple(sorted(keys[row.id])),
            agents=tuple(sorted(names[row.id])),
            by=by.get(row.id),
        )
        for row in found
    )


def _values(rows: Sequence[Row[*tuple[Any, ...]]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for batch, value in rows:
        found[batch].append(value)
    return found


def judged(judgement: Result | Grade) -> dict[str, object]:
    """The columns that tell how a run was judged."""
    compliance = pair(judgement.compliance) or (None, None)
    remediation = pair(judgement.remediation) or (None, None)
    return {
        "verdict": judgement.verdict,
        "fault": judgement.fault,
        "reason": clipped(judgement.reason),
        "compliance_passed": compliance[0],
        "compliance_total": compliance[1],
        "remediation_passed": remediation[0],
        "remediation_total": remediation[1],
        "after_agent": judgement.after_agent,
    }


def owned(owner: Owner) -> dict[str, object]:
    """The columns that tell who works on a run."""
    return {
        "owner_machine": owner.machine,
        "owner_boot": owner.boot,
        "owner_pid": owner.pid,
        "owner_started": owner.started,
    }


def owner(row: Row[*tuple[Any, ...]]) -> Owner | None:
    if row.owner_machine is None:
        return None
    return Owner(
        machine=row.owner_machine,
        boot=row.owner_boot,
        pid=row.owner_pid,
        started=row.owner_started,
    )


def listed(row: Row[*tuple[Any, ...]]) -> RunRow:
    return RunRow(
        id=row.id,
        batch=row.batch,
        scenario=row.scenario,
        title=row.title,
        agent=row.agent,
        lab=row.lab,
        repeat=row.repeat,
        state=row.state,
        verdict=row.verdict,
        fault=row.fault,
        reason=row.reason,
        compliance=_pair(row.compliance_passed, row.compliance_total),
        remediation=_pair(row.remediation_passed, row.remediation_total),
        after_agent=row.after_agent,
        created_at=moment(row.created_at),
        ended_at=maybe_moment(row.ended_at),
    )


def phase_columns(phase: Phase) -> dict[str, object]:
    return {
        "name": phase.name,
        "status": phase.status,
        "started_at": microseconds(phase.started_at),
        "ended_at": None if phase.ended_at is None else microseconds(phase.ended_at),
        "reason": phase.reason,
    }


def phases(rows: Sequence[Row[*tuple[Any, ...]]]) -> tuple[Phase, ...]:
    """The phases in the order in which a run goes through them."""
    found = [
        Phase(
            name=row.name,
            status=row.status,
            started_at=moment(row.started_at),
            ended_at=maybe_moment(row.ended_at),
            reason=row.reason,
        )
        for row in rows
    ]
    return tuple(sorted(found, key=lambda phase: PHASES.index(phase.name)))


def maybe_moment(value: int | None) -> datetime | None:
    return None if value is None else moment(value)


def maybe_microseconds(value: datetime | None) -> int | None:
    return None if value is None else microseconds(value)


def _pair(passed: int | None, total: int | None) -> tuple[int, int] | None:
    return None if passed is None or total is None else (passed, total)
