"""Progress of `opsdrill run` on standard error: a live table on a terminal, else plain lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from opsdrill.app.runs import RunEvent
from opsdrill.app.safe_text import shown
from opsdrill.cli.output import Output
from opsdrill.model.event import Said, TaskCreated, ToolCalled
from opsdrill.model.run import RunSpec

if TYPE_CHECKING:
    from rich.table import Table

ROWS = 12
"""Running runs that the live table shows."""
MANY = 500
"""Counted things from which on their progress is told."""
TELL_SECONDS = 5.0
"""Seconds between two lines about it where there is no terminal."""
WIDTH = 60
"""Characters of what is under way that it shows."""


class Progress(Protocol):
    """Told what happens; shows it."""

    def tell(self, event: RunEvent) -> None: ...

    def note(self, text: str) -> None: ...


@contextmanager
def progress_for(out: Output, specs: Sequence[RunSpec]) -> Iterator[Progress]:
    """Live on a terminal that can move its cursor; lines anywhere else."""
    if sys.stderr.isatty() and os.environ.get("TERM") not in (None, "", "dumb"):
        with LiveProgress(out, specs) as live:
            yield live
    else:
        yield LineProgress(out, specs)


@contextmanager
def counting(out: Output, what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Tell how far some counted work is; nothing is told of little work.

    Args:
        what: what was done with those that are counted.
        total: how many there are; from `MANY` on they are told.

    Yields:
        To be called with the number that is done.
    """
    if total < MANY:
        yield lambda _done: None
        return
    if sys.stderr.isatty() and os.environ.get("TERM") not in (None, "", "dumb"):
        from rich.progress import Progress as Bar

        with Bar(console=out.console(), transient=True) as bar:
            task = bar.add_task(what, total=total)
            yield lambda done: bar.update(task, completed=done)
        return
    told = monotonic()

    def tell(done: int) -> None:
        nonlocal told
        if monotonic() - told >= TELL_SECONDS:
            told = monotonic()
            out.note(f"{done} of {total} {what}")

    yield tell


class _Names:
    """What a run is called while it works: shorter than its id where that is enough."""

    def __init__(self, specs: Sequence[RunSpec]) -> None:
        several = len({str(spec.agent) for spec in specs}) > 1
        repeats = any(spec.repeat > 1 for spec in specs)
        self._names = {
            spec.id: spec.scenario.key
            + (f" by {spec.agent}" if several else "")
            + (f" #{spec.repeat}" if repeats else "")
            for spec in specs
        }

    def of(self, run: str) -> str:
        return shown(self._names.get(run, run))


class LineProgress:
    """One line for each phase that begins and each run that ends."""

    def __init__(self, out: Output, specs: Sequence[RunSpec]) -> None:
        self._out = out
        self._names = _Names(specs)
        self._total = len(specs)
        self._over = 0

    def tell(self, event: RunEvent) -> None:
        name = self._names.of(event.run)
        if event.phase is not None and event.phase.status == "running":
            self._out.note(f"{name}: {event.phase.name}")
        elif event.step is not None:
            self._out.note(f"{name}: {shown(event.step)}")
        elif event.result is not None:
            self._over += 1
            word = event.result.verdict or event.result.state
            reason = f": {shown(event.result.reason)}" if event.result.reason else ""
            self._out.note(f"{name}: {word}{reason} [{self._over}/{self._total}]")

    def note(self, text: str) -> None:
        self._out.note(shown(text))


class LiveProgress:
    """A table of the running runs that redraws itself, and the counts below it."""

    def __init__(self, out: Output, specs: Sequence[RunSpec]) -> None:
        from rich.live import Live

        self._names = _Names(specs)
        self._total = len(specs)
        self._counts: dict[str, int] = {}
        self._running: dict[str, tuple[str, str, float]] = {}
        self._console = out.console()
        self._live = Live(
            console=self._console,
            get_renderable=self._table,
            refresh_per_second=5,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> LiveProgress:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def tell(self, event: RunEvent) -> None:
        phase, doing, since = self._running.get(event.run, ("", "", monotonic()))
        if event.result is not None:
            self._running.pop(event.run, None)
            word = event.result.verdict or event.result.state
            self._counts[word] = self._counts.get(word, 0) + 1
            return
        if event.phase is not None:
            if event.phase.status == "running":
                phase, doing = event.phase.name, ""
        elif event.step is not None:
            doing = event.step
        elif event.job is not None:
            doing = _doing(event) or doing
        self._running[event.run] = (phase, doing, since)

    def note(self, text: str) -> None:
        self._console.print(shown(text))

    def _table(self) -> Table:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
        # A run stays one line: where there is no room, what it does is cut first.
        for wraps in (False, False, False, True):
            table.add_column(no_wrap=not wraps, overflow="crop")
        now = monotonic()
        for run, (phase, doing, since) in list(self._running.items())[:ROWS]:
            told = Text(shown(doing[:WIDTH]), style="dim", no_wrap=True, overflow="crop")
            table.add_row(Text(self._names.of(run)), phase, f"{now - since:.0f} s", told)
        hidden = len(self._running) - ROWS
        if hidden > 0:
            table.add_row(f"and {hidden} more")
        counts = ", ".join(f"{number} {word}" for word, number in sorted(self._counts.items()))
        over = sum(self._counts.values())
        table.add_row(Text(f"{over}/{self._total} over" + (f": {counts}" if counts else "")))
        return table


def _doing(event: RunEvent) -> str | None:
    match event.job:
        case ToolCalled(arguments={"command": str(command)}):
            return f"$ {command}"
        case ToolCalled(kind=kind, tool=tool):
            return tool or kind
        case TaskCreated(host=host, description=description):
            return f"{host}: {description or 'a task'}"
        case Said(text=text):
            return text
        case _:
            return None
