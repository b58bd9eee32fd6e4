"""`opsdrill grade`: grade a recorded job without running anything."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opsdrill.cli.choices import HOST, SPLIT_SSH, FailOn, ResultFormat
from opsdrill.cli.front import front


def grade(
    context: typer.Context,
    *,
    scenario: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="A scenario's file, folder or key.")
    ],
    record: Annotated[
        Path, typer.Argument(metavar="RECORD", help="A job record or another tool's transcript.")
    ],
    host_answers: Annotated[
        Path | None,
        typer.Option("--host-answers", metavar="FILE", help="What the hosts answered, as JSON."),
    ] = None,
    host: Annotated[str | None, HOST] = None,
    split_ssh: Annotated[bool, SPLIT_SSH] = False,
    format: Annotated[
        ResultFormat, typer.Option("--format", help="How the result is written.")
    ] = "table",
    fail_on: Annotated[
        FailOn | None, typer.Option("--fail-on", help="`failed`: exit with 1 when it failed.")
    ] = None,
) -> int:
    """Grade a recorded job, without running anything."""
    from opsdrill.app import grade as use_case
    from opsdrill.cli.report import report

    told = front(context)
    results = use_case.grade_record(
        told.place,
        scenario,
        record,
        host_answers,
        host=host,
        split_ssh=split_ssh,
        shelf=told.kept,
    )
    ended = report(told, results, format, fail_on)
    asks_hosts = any(rule.validator == "host_state" for rule in results[0].rules)
    if host_answers is None and asks_hosts:
        told.out.hint("what the hosts answered is missing; give it with --host-answers FILE")
    return ended
