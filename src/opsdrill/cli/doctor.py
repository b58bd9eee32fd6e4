"""`opsdrill doctor`: what this machine can do, what is missing and how to get it."""

from __future__ import annotations

from typing import Annotated

import typer

from opsdrill.app.safe_text import shown
from opsdrill.cli.choices import PageFormat
from opsdrill.cli.findings import show_findings
from opsdrill.cli.front import INVALID, PASSED, front


def doctor(
    context: typer.Context,
    clean: Annotated[
        bool, typer.Option("--clean", help="Also remove what killed processes left behind.")
    ] = False,
    format: Annotated[
        PageFormat, typer.Option("--format", help="How the findings are written.")
    ] = "table",
) -> int:
    """Tell what this machine can do, and how to get what is missing.

    Exits with 2 where no driver can work.
    """
    from opsdrill.app import doctor as use_case

    told = front(context)
    found = use_case.examine(told.place, clean=clean)
    if format == "json":
        told.out.document(use_case.document(found))
        return PASSED if found.usable else INVALID
    for driver in found.drivers:
        told.out.line(f"{driver.name}: {driver.state}")
        show_findings(told.out, driver)
    told.out.line(f"data folder: {shown(str(told.place.home))}")
    for line in found.cleaned:
        told.out.line(f"removed: {shown(line)}")
    if clean and not found.cleaned:
        told.out.line("nothing was left behind")
    return PASSED if found.usable else INVALID
