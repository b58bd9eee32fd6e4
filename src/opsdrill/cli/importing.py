"""`opsdrill import`: keep what other tools recorded as runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opsdrill.cli.choices import HOST, SPLIT_SSH, ListFormat
from opsdrill.cli.front import INVALID, PASSED, Front, front
from opsdrill.cli.text import shown

if TYPE_CHECKING:
    from opsdrill.app.imports import Kept, Order


def import_(
    context: typer.Context,
    *,
    file: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Job records and other tools' transcripts."),
    ],
    scenario: Annotated[
        str | None,
        typer.Option("--scenario", metavar="SCENARIO", help="Grade them by this scenario's rules."),
    ] = None,
    host_answers: Annotated[
        Path | None,
        typer.Option("--host-answers", metavar="FILE", help="What the hosts answered, as JSON."),
    ] = None,
    host: Annotated[str | None, HOST] = None,
    split_ssh: Annotated[bool, SPLIT_SSH] = False,
    print_: Annotated[
        bool,
        typer.Option("--print", help="Write the job records to standard output and keep nothing."),
    ] = False,
    format: Annotated[
        ListFormat, typer.Option("--format", help="How the list of runs is written.")
    ] = "table",
) -> int:
    """Keep what other tools recorded as runs.

    The format is found by looking at the file. With --print the job records go to standard
    output, one a line where there are several.
    """
    from opsdrill.app import imports as use_case

    told = front(context)
    order = use_case.Order(tuple(file), scenario, host, split_ssh, host_answers)
    if print_:
        return _print(told, order)
    kept: list[Kept] = []
    refused: list[use_case.Refused] = []
    for one in use_case.keep(told.place, order):
        if isinstance(one, use_case.Refused):
            refused.append(one)
            told.out.note(f"error: {shown(one.reason)}")
        else:
            kept.append(one)
            for warning in one.result.warnings:
                told.out.warning(f"{one.file}: {warning}")
    if format == "table":
        _table(told, kept)
    else:
        told.out.document(use_case.document(kept, refused, lines=format == "jsonl"))
    if kept and scenario is None:
        told.out.hint("they were kept without rules; give --scenario to grade them")
    return INVALID if refused else PASSED


def _print(told: Front, order: Order) -> int:
    from itertools import chain

    from opsdrill.app import documents
    from opsdrill.app import imports as use_case

    found = use_case.read(told.place, order)
    first, second = next(found), next(found, None)
    several = second is not None
    for name, imported in chain([first], [second] if second else [], found):
        for warning in imported.warnings:
            told.out.warning(f"{name}: {warning}")
        told.out.document(documents.of_model(imported.record, indented=not several))
    return PASSED


def _table(told: Front, kept: list[Kept]) -> None:
    from opsdrill.cli.table import Column

    told.out.table(
        [
            Column("RUN"),
            Column("FILE", "shorten"),
            Column("JOB", "drop"),
            Column("FORMAT"),
            Column("COMMANDS"),
            Column("VERDICT"),
            Column("REASON", "drop"),
        ],
        [
            [
                one.result.run or "-",
                one.file,
                one.job or "-",
                one.format,
                str(one.commands),
                one.result.verdict or "-",
                one.result.reason,
            ]
            for one in kept
        ],
        none="nothing was imported",
    )
