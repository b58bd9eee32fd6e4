"""Where words go: data to standard output, everything said about it to standard error.

Rich is imported when something is drawn, so that `--help` does not pay for it.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from opsdrill.cli.text import shown
from opsdrill.errors import InvalidInput, OpsDrillError

if TYPE_CHECKING:
    from rich.console import Console

PROBLEMS_SHOWN = 50
"""Problems of one document that are listed; the rest is counted."""

_STYLES = {"passed": "green", "failed": "red", "error": "yellow", "hint": "cyan", "label": "bold"}


def prepare_streams() -> None:
    """Make both streams unable to fail on a character: what cannot be shown is escaped.

    Under `LANG=C` the escapes are for everything beyond ASCII, as a plain terminal wants it.
    Python itself turns that locale into UTF-8, so its word is asked for, not Python's.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, _nowhere())
        elif isinstance(stream, io.TextIOWrapper):
            if _plain_locale():
                stream.reconfigure(encoding="ascii")
            stream.reconfigure(errors="backslashreplace")


def _nowhere() -> IO[str]:
    return Path(os.devnull).open("w", encoding="utf-8")


def _plain_locale() -> bool:
    if os.environ.get("PYTHONIOENCODING") or os.environ.get("PYTHONUTF8"):
        return False
    return (os.environ.get("LC_ALL") or os.environ.get("LANG") or "") in ("C", "POSIX")


class Output:
    """Writes for one command.

    Args:
        color: True and False decide; None asks the terminal and `NO_COLOR`.
    """

    def __init__(self, color: bool | None = None) -> None:
        self._color = color

    def console(self, *, err: bool = False) -> Console:
        """A Rich console for one stream; a pipe gets lines as long as they are."""
        from rich.console import Console

        stream = sys.stderr if err else sys.stdout
        return Console(
            file=stream,
            color_system="standard" if self.colored(stream) else None,
            force_terminal=stream.isatty(),
            width=None if stream.isatty() else 100_000,
            markup=False,
            highlight=False,
            emoji=False,
        )

    def colored(self, stream: IO[str]) -> bool:
        if self._color is not None:
            return self._color
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        return stream.isatty() and not plain

    # data, to standard output

    def line(self, text: str = "") -> None:
        """One line of data."""
        self._write(sys.stdout, text + "\n")

    def document(self, content: bytes) -> None:
        """A machine-readable document, UTF-8 whatever the locale, ending with a line break."""
        buffer = getattr(sys.stdout, "buffer", None)
        try:
            sys.stdout.flush()
            if buffer is None:
                sys.stdout.write(content.decode("utf-8"))
                sys.stdout.write("\n")
            else:
                buffer.write(content + b"\n" if content else b"")
                buffer.flush()
        except BrokenPipeError:
            silence(sys.stdout)

    def table(
        self, columns: Sequence[str], rows: Iterable[Sequence[str]], *, none: str = "nothing"
    ) -> None:
        """Rows under headers; cells are made safe here. Without rows it says so on stderr."""
        from rich.table import Table
        from rich.text import Text

        kept = list(rows)
        if not kept:
            self.note(none)
            return
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        for column in columns:
            table.add_column(column, overflow="fold", no_wrap=not sys.stdout.isatty())
        for row in kept:
            table.add_row(*(Text(shown(cell), style=_STYLES.get(cell, "")) for cell in row))
        console = self.console()
        with console.capture() as capture:
            console.print(table)
        self.line("\n".join(line.rstrip() for line in capture.get().rstrip("\n").split("\n")))

    def styled(self, text: str, style: str) -> str:
        """`text` in a style's colour, for a line of data, where colours are shown."""
        if not self.colored(sys.stdout):
            return text
        code = {"green": "32", "red": "31", "yellow": "33", "cyan": "36", "bold": "1"}
        return f"\x1b[{code[_STYLES[style]]}m{text}\x1b[0m"

    # words, to standard error

    def note(self, text: str) -> None:
        self._write(sys.stderr, text + "\n")

    def hint(self, text: str) -> None:
        self.note(f"hint: {text}")

    def warning(self, text: str) -> None:
        self.note(f"warning: {shown(text)}")

    def error(self, error: OpsDrillError) -> None:
        """One sentence; for a broken document each of its problems on a line; then the hint."""
        problems = error.problems if isinstance(error, InvalidInput) else ()
        if len(problems) > 1:
            self.note(f"error: {len(problems)} problems")
            for problem in problems[:PROBLEMS_SHOWN]:
                self.note(f"  {shown(str(problem))}")
            if len(problems) > PROBLEMS_SHOWN:
                self.note(f"  and {len(problems) - PROBLEMS_SHOWN} more")
        else:
            self.note(f"error: {shown(error.message)}")
        if error.hint:
            self.hint(shown(error.hint))

    @staticmethod
    def _write(stream: IO[str], text: str) -> None:
        try:
            stream.write(text)
            stream.flush()
        except BrokenPipeError:
            silence(stream)


def silence(stream: IO[str]) -> None:
    """Nobody reads `stream` any more: let everything further go nowhere, quietly."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
