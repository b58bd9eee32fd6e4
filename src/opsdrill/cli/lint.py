"""`opsdrill lint`: what is wrong with scenarios, like a linter tells it."""

from __future__ import annotations

from typing import Annotated

import typer

from opsdrill.app.safe_text import shown
from opsdrill.cli.choices import ListFormat
from opsdrill.cli.front import INVALID, PASSED, front


def lint(
    context: typer.Context,
    scenario: Annotated[
        list[str],
        typer.Argument(metavar="SCENARIO...", help="Files, folders, keys, tag:NAME or pack:NAME."),
    ],
    format: Annotated[
        ListFormat, typer.Option("--format", help="How the findings are written.")
    ] = "table",
    notes: Annotated[bool, typer.Option("--notes", help="Also what depends on judgement.")] = False,
    fix: Annotated[
        bool, typer.Option("--fix", help="Mend in the files what can safely be mended.")
    ] = False,
) -> int:
    """Refuse what is wrong in scenarios and warn of traps."""
    from opsdrill.app import lint as use_case

    told = front(context)
    if notes:
        from opsdrill.app.recorded import kept_values

        with kept_values(told.place) as kept:
            found = use_case.lint(told.place, scenario, kept, fix=fix, shelf=told.kept)
    else:
        found = use_case.lint(told.place, scenario, fix=fix, shelf=told.kept)
    problems = [item for item in found.problems if notes or item.severity != "note"]
    if format == "table":
        for done in found.fixes:
            told.out.line(shown(use_case.fix_line(done)))
        for problem in problems:
            told.out.line(shown(use_case.line(problem)))
        told.out.note(use_case.summary(found, problems))
    else:
        told.out.document(use_case.document(found, problems, lines=format == "jsonl"))
    if found.trouble:
        told.out.warning(f"kept runs were not looked at: {found.trouble}")
    return INVALID if any(problem.severity == "error" for problem in problems) else PASSED
