"""`opsdrill regrade`: grade kept runs again, and tell what flips."""

from __future__ import annotations

from typing import Annotated

import typer

from opsdrill.cli.choices import PageFormat
from opsdrill.cli.front import front
from opsdrill.errors import UsageError


def regrade(
    context: typer.Context,
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
    format: Annotated[
        PageFormat, typer.Option("--format", help="How the flips are written.")
    ] = "table",
) -> None:
    """Grade kept runs again, with their own or edited rules.

    Tells every flip; earlier grades stay.
    """
    from opsdrill.app import regrade as use_case
    from opsdrill.cli.table import Column

    told = front(context)
    if bool(run) == all_runs:
        raise UsageError("name the runs to grade again, or give --all")
    found = use_case.regrade(told.place, run or None, scenario)
    if format == "json":
        told.out.document(use_case.document(found))
        return
    told.out.table(
        [
            Column("RUN"),
            Column("RULE", "shorten"),
            Column("BEFORE"),
            Column("AFTER"),
            Column("REASON", "drop"),
        ],
        [[flip.run, flip.rule, flip.before, flip.after, flip.reason] for flip in found.flips],
        none="no flips",
    )
    for line in found.notes:
        told.out.warning(line)
    told.out.note(f"{found.graded} graded again, {len(found.flips)} flips")
