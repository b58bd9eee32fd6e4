"""Where words go: data to standard output, everything said about it to standard error.

Rich is imported when something is drawn, so that `--help` does not pay for it.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from opsdrill.app.safe_text import shown, shown_json
from opsdrill.cli.table import Column, lines
from opsdrill.errors import InvalidInput, OpsDrillError, OutputLost

if TYPE_CHECKING:
    from rich.console import Console

PROBLEMS_SHOWN = 50
"""Problems of one document that are listed; of more it is only said that there are others."""

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

    def console(self) -> Console:
        """A Rich console on standard error, for progress."""
        from rich.console import Console

        return Console(
            file=sys.stderr,
            color_system="standard" if self.colored(sys.stderr) else None,
            force_terminal=sys.stderr.isatty(),
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
        if sys.stdout.isatty():
            content = shown_json(content.decode("utf-8")).encode()
        buffer = getattr(sys.stdout, "buffer", None)
        try:
            sys.stdout.flush()
            if buffer is None:
                sys.stdout.write(content.decode("utf-8"))
                sys.stdout.write("\n")
            else:
                buffer.write(content + b"\n" if content else b"")
                buffer.flush()
        except OSError as error:
            _lost(sys.stdout, error)

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]], *, none: str) -> None:
        """Rows under headers; cells are made safe. Without rows it says `none` on stderr."""
        if not rows:
            self.note(none)
            return
        terminal = sys.stdout.isatty()
        width = shutil.get_terminal_size().columns if terminal else None
        styles = _STYLES if self.colored(sys.stdout) else {}
        for line in lines(columns, rows, width=width, stream=sys.stdout, styles=styles):
            self.line(line)

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
            what = error.message.partition(f": {problems[0]}")[0]
            many = len(problems) > PROBLEMS_SHOWN
            count = f"more than {PROBLEMS_SHOWN}" if many else str(len(problems))
            self.note(f"error: {shown(what)}: {count} problems")
            for problem in problems[:PROBLEMS_SHOWN]:
                self.note(f"  {shown(str(problem))}")
            if many:
                self.note("  and others")
        else:
            self.note(f"error: {shown(error.message)}")
        if error.hint:
            self.hint(shown(error.hint))

    @staticmethod
    def _write(stream: IO[str], text: str) -> None:
        try:
            stream.write(text)
            stream.flush()
        except OSError as error:
            _lost(stream, error)


def _lost(stream: IO[str], error: OSError) -> None:
    """Whatever went wrong, nothing more is written; nobody reading any more is no fault."""
    silence(stream)
    if stream is sys.stdout and not isinstance(error, BrokenPipeError):
        raise OutputLost(f"standard output cannot be written: {error.strerror or error}") from None


def silence(stream: IO[str]) -> None:
    """Nobody reads `stream` any more: let everything further go nowhere, quietly."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
