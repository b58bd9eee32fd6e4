"""Comparisons of two or more sets of runs."""

from __future__ import annotations

from fastapi import APIRouter, Response

from opsdrill.api.answers import told
from opsdrill.api.bodies import ToTheLetter
from opsdrill.api.entry import needs
from opsdrill.api.parameters import in_reach
from opsdrill.api.problems import answers
from opsdrill.api.service import Served
from opsdrill.app.comparison import Cell, Comparison, SetWanted, compare_asked
from opsdrill.store.store import RunFilter
from opsdrill.wire.comparisons import (
    CellTold,
    ComparisonAsked,
    ComparisonTold,
    LineTold,
    RuleFlip,
    SetAsked,
    SetTold,
)

router = APIRouter(tags=["comparisons"], route_class=ToTheLetter)


@router.post(
    "/comparisons",
    response_model=ComparisonTold,
    operation_id="compare_runs",
    summary="Compare sets of runs",
    description=(
        "Holds sets of runs against the first one: a line for each scenario and agent, "
        "regressions first, with the rules that flipped. Runs in `error` are counted apart and "
        "are in no rate. Nothing is kept."
    ),
    responses=answers(422),
    **needs("read"),
)
async def compare_runs(asked: ComparisonAsked, service: Served) -> Response:
    wanted = [_wanted(one, f"sets[{index}]") for index, one in enumerate(asked.sets)]
    return told(_told(await service.call(compare_asked, service.store, wanted, asked.by)))


def _wanted(asked: SetAsked, path: str) -> SetWanted:
    narrowed = RunFilter(
        scenario=asked.scenario,
        scenario_tag=asked.tag,
        agent=asked.agent,
        batch=asked.batch,
        labels=tuple(asked.labels.items()),
        since=in_reach(asked.since, f"{path}.since"),
        until=in_reach(asked.until, f"{path}.until"),
    )
    return SetWanted(asked.name, narrowed, tuple(asked.runs) if asked.runs else None)


def _told(found: Comparison) -> ComparisonTold:
    return ComparisonTold(
        sets=[
            SetTold(
                name=name,
                runs=len(runs.rows),
                cut=runs.cut,
                scenario_versions=found.versions[name],
            )
            for name, runs in found.sets.items()
        ],
        lines=[
            LineTold(
                scenario=line.scenario,
                agent=line.agent,
                cells={name: _cell(cell) if cell else None for name, cell in line.cells.items()},
                change=line.change,
                flips=[
                    RuleFlip(
                        rule=flip.rule,
                        set=flip.set,
                        before=flip.before,
                        after=flip.after,
                        change="unknown" if flip.change == "same" else flip.change,
                        runs=list(flip.runs),
                    )
                    for flip in line.flips
                ],
            )
            for line in found.lines
        ],
        warnings=list(found.warnings),
    )


def _cell(cell: Cell) -> CellTold:
    return CellTold(
        runs=len(cell.rows),
        passed=cell.count("passed"),
        failed=cell.count("failed"),
        error=cell.count("error"),
        pass_rate=cell.pass_rate,
        compliance=cell.compliance,
    )
