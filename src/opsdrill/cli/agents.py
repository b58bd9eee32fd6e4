"""`opsdrill agents`: who could work a ticket, and whether one can work here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opsdrill.app.safe_text import shown
from opsdrill.cli.choices import PageFormat
from opsdrill.cli.command import Command
from opsdrill.cli.front import INVALID, PASSED, front
from opsdrill.cli.table import Column

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look at agents.")

Config = Annotated[
    Path | None,
    typer.Option("--agent-config", metavar="FILE", help="A file that names agents."),
]


@app.command("list", cls=Command)
def list_(
    context: typer.Context,
    *,
    agent_config: Config = None,
    format: Annotated[
        PageFormat, typer.Option("--format", help="How the list is written.")
    ] = "table",
) -> None:
    """List every agent that `run` could take, and what it needs."""
    from opsdrill.app import agent_list as use_case

    told = front(context)
    rows = use_case.listed(told.place, agent_config)
    if format == "json":
        told.out.document(use_case.list_document(rows))
        return
    told.out.table(
        [
            Column("NAME"),
            Column("KIND"),
            Column("NEEDS", "shorten"),
            Column("MEANS", "shorten"),
            Column("KEEPS", "drop"),
        ],
        [[row.name, row.kind, row.needs, row.means, ", ".join(row.keeps) or "-"] for row in rows],
        none="no agents",
    )


@app.command(cls=Command)
def check(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="AGENT", help="As `run --agent` takes it.")],
    *,
    agent_config: Config = None,
    agent_env: Annotated[
        list[str] | None,
        typer.Option(
            "--agent-env", metavar="NAME", help="A variable that a program's agent gets. Several."
        ),
    ] = None,
    format: Annotated[
        PageFormat, typer.Option("--format", help="How the findings are written.")
    ] = "table",
) -> int:
    """Try an agent: can it start, does it answer, which model it uses.

    No host is touched and no model is asked. Exits with 2 when it cannot work here.
    """
    from opsdrill.app import agent_list as use_case

    told = front(context)
    found = use_case.check(told.place, name, agent_config, agent_env or ())
    if format == "json":
        told.out.document(use_case.check_document(found))
    else:
        told.out.line(f"{shown(str(found.agent))}:")
        for trial in found.trials:
            mark = "ok     " if trial.good else "missing"
            detail = f": {trial.detail}" if trial.detail else ""
            told.out.line(f"  {mark}  {shown(trial.what + detail)}")
            if trial.remedy and not trial.good:
                told.out.line(f"           to get it: {shown(trial.remedy, limit=1000)}")
    return PASSED if found.usable else INVALID
