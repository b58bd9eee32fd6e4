"""The command line: commands, the options for all of them, errors and exit statuses.

`opsdrill --help` must stay cheap, so a command's file declares its options only and imports what
it needs when it is called.
"""

from __future__ import annotations

import re
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from opsdrill import __version__
from opsdrill.app.safe_text import shown
from opsdrill.cli import (
    agents,
    db,
    doctor,
    grade,
    hosts,
    importing,
    init,
    lint,
    regrade,
    run,
    runs,
    scenarios,
    serve,
    token,
)
from opsdrill.cli.command import Command
from opsdrill.cli.front import ERROR, INTERRUPTED, INVALID, Front
from opsdrill.cli.output import Output, prepare_streams, silence
from opsdrill.errors import OpsDrillError, UsageError

app = typer.Typer(
    name="opsdrill",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: readable everywhere, and half the start-up time
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"opsdrill {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    home: Annotated[
        Path | None,
        typer.Option("--home", metavar="DIR", help="The data folder; or OPSDRILL_HOME."),
    ] = None,
    no_color: Annotated[bool, typer.Option("--no-color", help="No colours; as NO_COLOR.")] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where in the program an error arose.")
    ] = False,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_show_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Drills for AI agents that operate servers.

    OpsDrill breaks hosts on purpose, hands the agent a ticket, watches what it does, and grades
    the result by rules. These options may also stand after the command.
    """
    context.obj = Front(home, no_color, debug)
    if debug:
        _log_everything()


def _log_everything() -> None:
    import logging

    logging.basicConfig(stream=sys.stderr, format="%(name)s: %(message)s")
    logging.getLogger("opsdrill").setLevel(logging.DEBUG)


app.command("run", cls=Command)(run.run)
app.command("grade", cls=Command)(grade.grade)
app.command("import", cls=Command)(importing.import_)
app.command("regrade", cls=Command)(regrade.regrade)
app.command("lint", cls=Command)(lint.lint)
app.add_typer(runs.app, name="runs")
app.add_typer(scenarios.app, name="scenarios")
app.add_typer(hosts.app, name="hosts")
app.add_typer(agents.app, name="agents")
app.command("serve", cls=Command)(serve.serve)
app.add_typer(token.app, name="token")
app.add_typer(db.app, name="db")
app.command("init", cls=Command)(init.init)
app.command("doctor", cls=Command)(doctor.doctor)


def arranged(arguments: Sequence[str]) -> list[str]:
    """The arguments with the options for all commands put first, wherever they were given."""
    first: list[str] = []
    rest: list[str] = []
    waiting = list(arguments)
    while waiting:
        word = waiting.pop(0)
        if word == "--":
            rest += [word, *waiting]
            break
        if word in ("--no-color", "--debug") or word.startswith("--home="):
            first.append(word)
        elif word == "--home":
            if not waiting:
                raise UsageError("--home needs a folder")
            first += [word, waiting.pop(0)]
        else:
            rest.append(word)
    return first + rest


def hand_down_no_ignoring() -> None:
    """What whoever started us had us ignore, what we start does not ignore.

    Under `nohup`, or behind `&` in a script, some signals are ignored, and so they would be by
    every program from here on, a command of a drill included. A handler is not handed down so.
    Where the ends of children are ignored, the kernel keeps no status of them.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda _number, _frame: None)


def main() -> None:
    """The program `opsdrill`."""
    prepare_streams()
    hand_down_no_ignoring()
    sys.exit(_guarded(sys.argv[1:]))


def _guarded(arguments: Sequence[str]) -> int:
    """Run one command; whatever goes wrong becomes a sentence and an exit status."""
    out = Output(False if "--no-color" in arguments else None)
    try:
        status = app(arranged(arguments), prog_name="opsdrill", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except BrokenPipeError:
        silence(sys.stdout)
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if "--debug" in arguments:
            traceback.print_exc()
        return _explained(error, out)


def _explained(error: Exception, out: Output) -> int:
    if isinstance(error, OpsDrillError):
        out.error(error)
        return ERROR if error.fault in ("infrastructure", "opsdrill") else INVALID
    if isinstance(error, typer.TyperException):
        _usage(error, out)
        return INVALID
    if isinstance(error, OSError):
        silence(sys.stdout)  # if that is what cannot be written, Python would say so once more
        where = f"{shown(str(error.filename))}: " if error.filename else ""
        out.note(f"error: {where}{error.strerror or error}")
        return INVALID if error.filename else ERROR
    out.note(f"error: OpsDrill itself failed: {type(error).__name__}: {shown(str(error))}")
    out.hint("this is a bug; run it again with --debug and report what it shows")
    return ERROR


_WORDS = (
    (": Value error, ", ": "),
    ("Input should be a valid integer.*", "must be a whole number"),
    ("Input should be greater than or equal to", "must be at least"),
    ("Input should be less than or equal to", "must be at most"),
)
"""What the library says of a value, and what we say."""


def _usage(error: typer.TyperException, out: Output) -> None:
    context: Any = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        out.note(error.format_message())
        return
    message = error.format_message().rstrip(".")
    for theirs, ours in _WORDS:
        message = re.sub(theirs, ours, message)
    out.note(f"error: {message[:1].lower()}{message[1:]}")
    if context is not None:
        out.hint(f"see `{context.command_path} --help`")
