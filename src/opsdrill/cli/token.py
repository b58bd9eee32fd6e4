"""`opsdrill token`: who may use the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from opsdrill.app.safe_text import shown
from opsdrill.cli.choices import PageFormat
from opsdrill.cli.command import Command
from opsdrill.cli.front import PASSED, front
from opsdrill.cli.table import Column

if TYPE_CHECKING:
    from datetime import datetime

    from opsdrill.app.access import Token

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Tokens, which the API asks for."
)

Role = Literal["read", "run", "edit", "admin"]
COLUMNS = ("ID", "NAME", "ROLE", "STATE", "MADE", "EXPIRES", "LAST USED")


@app.command(cls=Command)
def create(
    context: typer.Context,
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is for.")],
    role: Annotated[Role, typer.Option("--role", help="What its holder may do.")],
    expires: Annotated[
        int | None,
        typer.Option("--expires", metavar="DAYS", min=1, max=3650, help="Days until it is over."),
    ] = None,
    format: Annotated[PageFormat, typer.Option("--format", help="How it is written.")] = "table",
) -> int:
    """Make a token and show it, this once.

    Each role may do all that those before it may: read, run, edit, admin.
    """
    from opsdrill.app import tokens

    told = front(context)
    made = tokens.create(told.place, name, role, expires)
    if format == "json":
        told.out.document(tokens.document_of_one(made))
        return PASSED
    told.out.line(made.secret)
    until = f" until {_moment(made.token.expires_at)}" if made.token.expires_at else ""
    told.out.note(f"token {made.token.id} with the role {role}{until}; it is shown this once")
    return PASSED


@app.command("list", cls=Command)
def list_(
    context: typer.Context,
    format: Annotated[
        PageFormat, typer.Option("--format", help="How the tokens are written.")
    ] = "table",
) -> int:
    """List tokens, those that are over too, without their secrets."""
    from opsdrill.app import tokens

    told = front(context)
    found = tokens.listed(told.place)
    if format == "json":
        told.out.document(tokens.document(found))
        return PASSED
    told.out.table(
        [Column(name, "shorten" if name == "NAME" else "keep") for name in COLUMNS],
        [_row(token, state) for token, state in found],
        none="no tokens",
    )
    return PASSED


@app.command(cls=Command)
def revoke(
    context: typer.Context,
    id: Annotated[str, typer.Argument(metavar="ID", help="As `token list` shows it.")],
) -> int:
    """End a token, and the sessions of browsers that logged in with it."""
    from opsdrill.app import tokens

    told = front(context)
    ended = tokens.revoke(told.place, id)
    told.out.note(f"token {ended.id} ({shown(ended.name)}) is revoked")
    return PASSED


def _row(token: Token, state: str) -> list[str]:
    moments = (token.created_at, token.expires_at, token.last_used_at)
    return [token.id, token.name, token.role, state, *(_moment(each) for each in moments)]


def _moment(moment: datetime | None) -> str:
    return moment.astimezone().strftime("%Y-%m-%d %H:%M") if moment else ""
