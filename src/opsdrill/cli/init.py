"""`opsdrill init`: a new scenario folder."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from opsdrill.app.safe_text import shown
from opsdrill.cli.front import front


def init(
    context: typer.Context,
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A folder that is empty or not there yet.")
    ],
) -> None:
    """Make a new scenario folder with every field commented."""
    from opsdrill.app import scenarios as use_case

    told = front(context)
    for path in use_case.init(folder):
        told.out.line(shown(str(path)))
    told.out.hint(f"check it with `opsdrill lint {shown(shlex.quote(str(folder)))}`")
