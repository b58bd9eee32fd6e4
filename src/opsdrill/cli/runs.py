"""`opsdrill runs`: look at the runs that are kept, and delete them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opsdrill.app.safe_text import shown
from opsdrill.cli.choices import ListFormat, PageFormat
from opsdrill.cli.command import Command
from opsdrill.cli.front import front
from opsdrill.cli.table import Column
from opsdrill.errors import UsageError

if TYPE_CHECKING:
    from opsdrill.app.export import Writer
    from opsdrill.app.history import Differences, Kept, Row
    from opsdrill.cli.output import Output

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look at kept runs.")

RunId = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, or how it begins.")]


Scenario = Annotated[
    str | None, typer.Option("--scenario", metavar="KEY", help="Only runs of this scenario.")
]
Agent = Annotated[
    str | None, typer.Option("--agent", metavar="AGENT", help="Only runs by this agent.")
]
State = Annotated[
    str | None,
    typer.Option(
        "--state",
        metavar="STATE",
        help="Only these: planned, running, done, cancelled, interrupted.",
    ),
]
Verdict = Annotated[
    str | None,
    typer.Option("--verdict", metavar="VERDICT", help="Only these: passed, failed, error."),
]
Batch = Annotated[
    str | None, typer.Option("--batch", metavar="ID", help="Only runs started together.")
]
Limit = Annotated[int, typer.Option("--limit", metavar="N", min=1, max=1000, help="How many rows.")]
Cursor = Annotated[
    str | None, typer.Option("--cursor", metavar="CURSOR", help="Go on after an earlier page.")
]

DIFFERENCES = 20
"""Differences of each kind that are shown of a run."""

COLUMNS = (
    Column("RUN"),
    Column("SCENARIO", "shorten"),
    Column("AGENT", "end"),
    Column("STATE"),
    Column("VERDICT"),
    Column("COMPLIANCE", "drop"),
    Column("CREATED", "drop"),
    Column("REASON", "drop"),
)


@app.command("list", cls=Command)
def list_(
    context: typer.Context,
    *,
    scenario: Scenario = None,
    agent: Agent = None,
    state: State = None,
    verdict: Verdict = None,
    batch: Batch = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    format: Annotated[
        ListFormat, typer.Option("--format", help="How the list is written.")
    ] = "table",
) -> None:
    """List kept runs, the newest first."""
    from opsdrill.app import history as use_case

    told = front(context)
    wanted = use_case.wanted(
        scenario=scenario, agent=agent, state=state, verdict=verdict, batch=batch
    )
    page = use_case.page(told.place, wanted, limit=limit, cursor=cursor)
    if format != "table":
        told.out.document(use_case.page_document(page, lines=format == "jsonl"))
        return
    told.out.table(COLUMNS, [_cells(row) for row in page.rows], none="no runs")
    if page.cursor:
        told.out.hint(f"there are more: --cursor {shown(page.cursor)}")


def _cells(row: Row) -> list[str]:
    return [
        row.id,
        row.scenario,
        row.agent,
        row.state,
        row.verdict or "-",
        "{}/{}".format(*row.compliance) if row.compliance else "-",
        f"{row.created_at:%Y-%m-%d %H:%M:%S}Z",
        row.reason,
    ]


@app.command(cls=Command)
def show(
    context: typer.Context,
    run: RunId,
    format: Annotated[
        PageFormat, typer.Option("--format", help="How the run is written.")
    ] = "table",
) -> None:
    """Show one run: completion first, then every rule and why."""
    from opsdrill.app import history as use_case
    from opsdrill.cli.formats import json

    told = front(context)
    kept = use_case.show(told.place, run)
    if format == "json":
        told.out.document(json.results([kept.result]))
    else:
        _show(told.out, kept)


def _show(out: Output, kept: Kept) -> None:
    from opsdrill.app import wording
    from opsdrill.cli.formats import terminal

    result = kept.result
    terminal.headline(out, result)
    out.line(f"  lab: {shown(kept.run.spec.lab.name)}")
    for name, share in (("compliance", result.compliance), ("remediation", result.remediation)):
        out.line(f"  {name}: {wording.share(share)}")
    if result.completion or result.rules or result.warnings:
        out.line()
    terminal.explained(out, result)
    if kept.run.phases:
        out.line("\nphases:")
    for phase in kept.run.phases:
        ended = phase.ended_at
        took = f"{(ended - phase.started_at).total_seconds():.3f} s" if ended else "-"
        reason = f"  {phase.reason}" if phase.reason else ""
        out.line(f"  {phase.name:<10} {phase.status:<12} {took}{shown(reason)}")
    for facts, changed in kept.hosts:
        made = ", ".join(part for part in (facts.driver, facts.distribution, facts.shell) if part)
        out.line(f"\nhost {shown(facts.name)}: {shown(made)}")
        if changed is None:
            out.line("  changed files: not known")
        for file in changed or ():
            out.line(f"  {file.change:<8} {shown(file.path)}")
    if kept.differences is not None:
        _show_differences(out, kept.differences)
    if len(kept.grades) > 1:
        out.line("\ngrades:")
        for grade in kept.grades:
            told = f"{grade.grade.verdict}  {grade.cause}  {grade.created_at:%Y-%m-%d %H:%M:%S}Z"
            by = f"  by {shown(grade.by)}" if grade.by else ""
            rules = f"  rules {(grade.grade.scenario_version or '-')[:12]}"
            out.line(f"  {grade.number}  {told}{by}{rules}")
            out.line(f"     {shown(grade.grade.reason)}")


def _show_differences(out: Output, found: Differences) -> None:
    """The agent's own report beside what the gateway saw."""
    out.line(f"\nthe agent's own report ({shown(found.by)}) beside what the gateway saw:")
    if not found.never_run and not found.not_reported:
        out.line("  both tell the same")
    for what, calls in (
        ("reported but never run", found.never_run),
        ("run but not reported", found.not_reported),
    ):
        if calls:
            out.line(f"  {what}:")
        for host, call in calls[:DIFFERENCES]:
            out.line(f"    {shown(host)}: {shown(call.command or call.path or call.tool or '')}")
        if len(calls) > DIFFERENCES:
            out.line(f"    and {len(calls) - DIFFERENCES} more")


@app.command(cls=Command)
def evidence(
    context: typer.Context,
    run: RunId,
    format: Annotated[
        PageFormat, typer.Option("--format", help="`json` is the job record itself.")
    ] = "json",
) -> None:
    """Print the job record: all that the agent was seen to do."""
    from opsdrill.app import documents
    from opsdrill.app import history as use_case
    from opsdrill.cli.formats import evidence as page

    told = front(context)
    record = use_case.evidence(told.place, run)
    if format == "json":
        told.out.document(documents.of_model(record))
    else:
        page.show(told.out, record)


@app.command(cls=Command)
def export(
    context: typer.Context,
    run: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Ids of runs, or how they begin.")
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="FORMAT",
            help="`job`, our own job record; `atif`; `html`, a page for people.",
        ),
    ] = "job",
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="DIR", help="A folder: one file for each run."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Write over files that are there already.")
    ] = False,
) -> None:
    """Write runs for other tools, or as pages for people."""
    from opsdrill.app import export as use_case

    told = front(context)
    if output is None and len(run) > 1:
        raise UsageError("several runs do not fit into one document", hint="name a --output DIR")
    beside = {"html": _report()} if to == "html" else {}
    for made in use_case.export(told.place, run, to, beside):
        if output is None:
            told.out.document(made.content)
        else:
            told.out.line(shown(str(use_case.write(made, output, over=force))))


def _report() -> Writer:
    """What writes a run as a page; it needs what the pages need. Raises UsageError."""
    try:
        from opsdrill.web.report import written
    except ModuleNotFoundError as error:
        raise UsageError(
            f"a page needs the module {error.name}, which is not installed",
            hint="install OpsDrill with its extra `serve`: pip install 'opsdrill[serve]'",
        ) from None
    return written


@app.command(cls=Command)
def delete(
    context: typer.Context,
    run: Annotated[list[str], typer.Argument(metavar="RUN...", help="Ids of runs.")],
) -> None:
    """Delete kept runs with their evidence and grades."""
    from opsdrill.app import history as use_case

    told = front(context)
    for name in use_case.delete(told.place, run):
        told.out.line(shown(name))
