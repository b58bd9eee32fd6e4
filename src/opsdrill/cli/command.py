"""The help of one command: arguments by the names that the reference pages use for them."""

from __future__ import annotations

from typing import Any

from typer.core import TyperArgument, TyperCommand


class Command(TyperCommand):
    """Leaves out what Typer adds to an argument's name: its Python type, and braces around it.

    The types of context and formatter have no public name.
    """

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        names = [_name(param) for param in self.get_params(ctx) if isinstance(param, TyperArgument)]
        return ["[OPTIONS]", *names]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        arguments, options = [], []
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            if isinstance(param, TyperArgument):
                arguments.append((_name(param), param.help or ""))
            else:
                options.append(record)
        for title, rows in (("Arguments", arguments), ("Options", options)):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _name(argument: TyperArgument) -> str:
    return argument.metavar or argument.name.upper()
