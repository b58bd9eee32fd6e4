"""Searching that somebody waits for: it ends after so many seconds, whatever the patterns are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Timer

from opsdrill.errors import OpsDrillError, UsageError
from opsdrill.patterns import BoundedSearcher


@contextmanager
def patient(seconds: float, what: str) -> Iterator[BoundedSearcher]:
    """A searcher for some seconds of wall time.

    Args:
        seconds: how long.
        what: is being done, for the message.

    Raises:
        UsageError: the time is over, and something was still to be searched.
    """
    over = Event()
    with BoundedSearcher() as searcher:

        def end() -> None:
            over.set()
            searcher.close()

        timer = Timer(seconds, end)
        timer.daemon = True
        timer.start()
        try:
            yield searcher
        except OpsDrillError:
            if not over.is_set():
                raise
            raise UsageError(
                f"{what} takes more than {seconds:g} seconds, and was given up",
                hint="is one of the patterns very slow? `opsdrill lint` finds nested repeats",
            ) from None
        finally:
            timer.cancel()
