"""`opsdrill regrade`: grade kept runs again, and tell what flips."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from opsdrill.cli.choices import ListFormat
from opsdrill.cli.front import Front, front
from opsdrill.errors import UsageError

if TYPE_CHECKING:
    from opsdrill.app.regrade import Flip, Regrading

SHOWN = 1000
"""Flips that the table shows one by one."""


def regrade(
    context: typer.Context,
    *,
    run: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUN]...", help="Ids of runs, or how they begin."),
    ] = None,
    all_runs: Annotated[bool, typer.Option("--all", help="Every run that is kept.")] = False,
    scenario: Annotated[
        str | None,
        typer.Option(
            "--scenario", metavar="FILE", help="Take the rules from here, not from the run."
        ),
    ] = None,
    preview: Annotated[
        bool, typer.Option("--preview", help="Only tell what would flip; keep nothing.")
    ] = False,
    format: Annotated[
        ListFormat, typer.Option("--format", help="How the flips are written.")
    ] = "table",
) -> None:
    """Grade kept runs again, with their own or edited rules.

    Tells every flip. Earlier grades stay; a grade that differs in nothing is not kept again.
    """
    from opsdrill.app import regrade as use_case
    from opsdrill.cli.progress import counting

    told = front(context)
    if bool(run) == all_runs:
        raise UsageError("name the runs to grade again, or give --all")
    order = use_case.Order(run or None, scenario, preview)
    flips: list[Flip] = []
    with (
        use_case.regrading(told.place, order) as work,
        counting(told.out, "graded again", work.total) as count,
    ):
        for some in work:
            count(work.seen)
            if format == "jsonl":
                if some:
                    told.out.document(use_case.flip_lines(some))
            elif format == "json" or len(flips) < SHOWN:
                flips += some
    if format == "json":
        told.out.document(use_case.document(work, flips, preview=preview))
    elif format == "table":
        _tables(told, work, flips[:SHOWN])
    _tell(told, work, preview=preview)


def _tables(told: Front, work: Regrading, flips: list[Flip]) -> None:
    """How many runs flipped by rule, where there are several; then each flip."""
    from opsdrill.app.regrade import summary_rows
    from opsdrill.cli.table import Column

    summary = summary_rows(work)
    if any(row["runs"] != 1 for row in summary):
        columns = ("scenario", "rule", "before", "after", "runs")
        told.out.table(
            [Column("SCENARIO", "shorten"), Column("RULE", "shorten")]
            + [Column(name.upper()) for name in columns[2:]],
            [[str(row[name]) for name in columns] for row in summary],
            none="no flips",
        )
        told.out.line()
    told.out.table(
        [
            Column("RUN"),
            Column("RULE", "shorten"),
            Column("BEFORE"),
            Column("AFTER"),
            Column("REASON", "drop"),
        ],
        [[flip.run, flip.rule, flip.before, flip.after, flip.reason] for flip in flips],
        none="no flips",
    )


def _tell(told: Front, work: Regrading, *, preview: bool) -> None:
    for line in work.notes():
        told.out.warning(line)
    total = sum(work.summary.values())
    kept = "nothing was kept" if preview else f"{work.changed} new grades"
    told.out.note(f"{work.graded} graded again, {total} flips, {kept}")
    if total > SHOWN:
        told.out.hint(f"only the first {SHOWN} flips are shown one by one; --format jsonl has all")
