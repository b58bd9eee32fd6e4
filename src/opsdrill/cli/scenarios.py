"""`opsdrill scenarios`: look at scenarios, and at the schemas of the files."""

from __future__ import annotations

from typing import Annotated

import typer

from opsdrill.app.safe_text import indented, shown, shown_block
from opsdrill.cli.choices import ListFormat, PageFormat
from opsdrill.cli.command import Command
from opsdrill.cli.front import INVALID, PASSED, front

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look at scenarios.")


@app.command("list", cls=Command)
def list_(
    context: typer.Context,
    selection: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SCENARIO]...", help="Files, folders, keys, or tag:NAME; all without any."
        ),
    ] = None,
    format: Annotated[
        ListFormat, typer.Option("--format", help="How the list is written.")
    ] = "table",
) -> int:
    """List scenarios: those that come along, and your own."""
    from opsdrill.app import scenarios as use_case
    from opsdrill.cli.table import Column

    told = front(context)
    found = use_case.listed(told.place, selection or [], told.kept)
    if format == "table":
        told.out.table(
            [
                Column("KEY"),
                Column("TITLE", "shorten"),
                Column("TAGS", "shorten"),
                Column("HOSTS", "drop"),
                Column("RULES", "drop"),
                Column("FOLDER", "drop"),
            ],
            [
                [
                    item.scenario.key,
                    item.scenario.title,
                    ", ".join(item.scenario.tags),
                    str(len(item.scenario.hosts)),
                    str(len(item.scenario.validation)),
                    str(item.folder or "(in the store)"),
                ]
                for item in found.scenarios
            ],
            none="no scenarios",
        )
    else:
        told.out.document(use_case.document(found, lines=format == "jsonl"))
    for problem in found.problems:
        told.out.warning(str(problem))
    return INVALID if found.problems else PASSED


@app.command(cls=Command)
def show(
    context: typer.Context,
    scenario: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="A file, a folder, or a key.")
    ],
    format: Annotated[
        PageFormat, typer.Option("--format", help="How the scenario is written.")
    ] = "table",
) -> None:
    """Show one scenario: the fault, the ticket and the rules."""
    from opsdrill.app import scenarios as use_case

    told = front(context)
    loaded = use_case.one(told.place, scenario, told.kept)
    if format == "json":
        told.out.document(use_case.as_json(loaded))
        return
    out, shape = told.out, loaded.scenario
    out.line(f"{out.styled(shown(shape.key), 'label')}: {shown(shape.title)}")
    out.line(f"  folder: {shown(str(loaded.folder or '(in the store)'))}")
    out.line(f"  version: {loaded.version}")
    if shape.tags:
        out.line(f"  tags: {shown(', '.join(shape.tags))}")
    out.line(f"  hosts: {', '.join(shape.host_names) or 'none'}")
    if shape.description:
        out.line(indented(shown_block(shape.description.rstrip()), 2))
    out.line(f"\nticket: {shown(shape.ticket_title)}")
    if shape.ticket_body:
        out.line(indented(shown_block(shape.ticket_body.rstrip()), 2))
    for name in ("setup", "reference", "restore"):
        for step in getattr(shape, name):
            out.line(f"{name}: {shown(shape.host_of(step.on))}$ {shown(step.run)}")
    out.line("\nrules:")
    for index, rule in enumerate(shape.validation):
        optional = "" if rule.required else ", optional"
        out.line(f"  [{index}] {shown(rule.label)} ({rule.validator}{optional})")


@app.command(cls=Command)
def schema(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="scenario (the default), job, result, ...")
    ] = "scenario",
) -> None:
    """Print the JSON Schema of a file format.

    For editors that complete and check, and for other programs.
    """
    from opsdrill.app import scenarios as use_case

    front(context).out.document(use_case.schema(name))
