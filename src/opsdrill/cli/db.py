"""`opsdrill db`: the store's own affairs."""

from __future__ import annotations

import typer

from opsdrill.cli.command import Command
from opsdrill.cli.front import PASSED, front

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The store of what is kept.")


@app.callback()
def _group() -> None:
    """The store of what is kept."""


@app.command(cls=Command)
def upgrade(context: typer.Context) -> int:
    """Bring the store up to date, or make it where there is none.

    Every command does so where it must; this one does nothing else, so that it can be done at a
    moment of one's choice.
    """
    from opsdrill.app import stores

    told = front(context)
    told.out.line(f"the store is up to date: version {stores.upgraded_store(told.place)}")
    return PASSED
