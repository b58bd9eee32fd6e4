"""`opsdrill import`: keep what other tools recorded as runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opsdrill.app.safe_text import shown
from opsdrill.cli.choices import HOST, SPLIT_SSH, ListFormat
from opsdrill.cli.front import INTERRUPTED, INVALID, PASSED, Front, front

if TYPE_CHECKING:
    from opsdrill.app.imports import Kept, Known, Order, Refused


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
    again: Annotated[
        bool, typer.Option("--again", help="Keep once more what was kept before.")
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
    order = use_case.Order(tuple(file), scenario, host, split_ssh, host_answers, again)
    if print_:
        return _print(told, order)
    done = _Done()
    interrupted = False
    try:
        for one in use_case.keep(told.place, order):
            done.add(told, one)
    except KeyboardInterrupt:
        interrupted = True
    if format == "table":
        _table(told, done.kept)
    else:
        lines = format == "jsonl"
        told.out.document(use_case.document(done.kept, done.known, done.refused, lines=lines))
    if done.kept and scenario is None:
        told.out.hint("they were kept without rules; give --scenario to grade them")
    if interrupted:
        told.out.note(f"interrupted: {done.count()} kept")
        told.out.hint("give the same command to go on: what is kept is not kept twice")
        return INTERRUPTED
    return INVALID if done.refused else PASSED


@dataclass
class _Done:
    """What became of the files so far."""

    kept: list[Kept] = field(default_factory=list)
    known: list[Known] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)

    def add(self, told: Front, one: Kept | Known | Refused) -> None:
        """Take one in, and tell what is to be said of it."""
        from opsdrill.app import imports as use_case

        if isinstance(one, use_case.Refused):
            self.refused.append(one)
            where = "" if one.file in one.reason else f"{one.file}: "
            told.out.note(f"error: {shown(where + one.reason)}")
        elif isinstance(one, use_case.Known):
            self.known.append(one)
            job = f" ({one.job})" if one.job else ""
            told.out.note(
                f"{shown(one.file + job)}: already kept as run {one.run};"
                " --again keeps it once more"
            )
            if one.other_rules:
                told.out.hint(f"the rules are others now: `opsdrill regrade {one.run} --scenario`")
        else:
            self.kept.append(one)
            _warn(told, one.file, one.result.warnings)

    def count(self) -> str:
        """How many runs there are of it."""
        runs = len(self.kept)
        return f"{runs} run is" if runs == 1 else f"{runs} runs are"


def _print(told: Front, order: Order) -> int:
    from itertools import chain

    from opsdrill.app import documents
    from opsdrill.app import imports as use_case

    found = use_case.read(told.place, order)
    first, second = next(found), next(found, None)
    several = second is not None
    for name, imported in chain([first], [second] if second else [], found):
        _warn(told, name, imported.warnings)
        told.out.document(documents.of_model(imported.record, indented=not several))
    return PASSED


def _warn(told: Front, file: str, warnings: Sequence[str]) -> None:
    """One line a kind; the run has them all."""
    from opsdrill.app.wording import by_kind

    for warning in by_kind(warnings):
        told.out.warning(f"{file}: {warning}")


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
