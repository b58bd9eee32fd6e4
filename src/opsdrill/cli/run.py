"""`opsdrill run`: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opsdrill.cli.choices import FailOn, ResultFormat
from opsdrill.cli.front import front


def run(
    context: typer.Context,
    *,
    scenario: Annotated[
        list[str],
        typer.Argument(metavar="SCENARIO...", help="Files, folders, keys, tag:NAME or pack:NAME."),
    ],
    agent: Annotated[
        list[str] | None,
        typer.Option(
            "--agent",
            metavar="AGENT",
            help="Who works: NAME[:ARGUMENT]. Several: each works every scenario.",
        ),
    ] = None,
    agent_config: Annotated[
        Path | None,
        typer.Option("--agent-config", metavar="FILE", help="A file that names agents."),
    ] = None,
    agent_env: Annotated[
        list[str] | None,
        typer.Option(
            "--agent-env", metavar="NAME", help="A variable that a program's agent gets. Several."
        ),
    ] = None,
    lab: Annotated[
        str | None,
        typer.Option("--lab", metavar="LAB", help="A driver's name, a lab file, or a lab's name."),
    ] = None,
    repeat: Annotated[
        int | None,
        typer.Option("--repeat", metavar="N", min=1, max=10_000, help="How often each runs."),
    ] = None,
    parallel: Annotated[
        int | None,
        typer.Option("--parallel", metavar="N", min=1, max=1000, help="How many runs at once."),
    ] = None,
    format: Annotated[
        ResultFormat, typer.Option("--format", help="How the results are written.")
    ] = "table",
    fail_on: Annotated[
        FailOn | None, typer.Option("--fail-on", help="`failed`: exit with 1 when a run failed.")
    ] = None,
) -> int:
    """Break hosts, hand agents the ticket, and grade what they did.

    Ctrl-C once stops starting runs, gives the hosts back and keeps what is done; twice stops at
    once.
    """
    from opsdrill.app.runs import Order
    from opsdrill.cli.drill import drill

    order = Order(scenario, agent or (), agent_config, lab, repeat, parallel, agent_env or ())
    return drill(front(context), order, format, fail_on)
