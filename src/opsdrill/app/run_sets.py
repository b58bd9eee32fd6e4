"""Sets of kept runs, for comparisons and trends: the newest that some filters let through."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from opsdrill.app.history import there
from opsdrill.app.run_rows import all_rows
from opsdrill.store.store import RunFilter, RunRow, Store


@dataclass(frozen=True, slots=True)
class RunSet:
    """Some runs that are over, the newest first; `cut` says that there are more."""

    rows: tuple[RunRow, ...]
    cut: bool = False


def filtered(store: Store, narrowed: RunFilter, most: int) -> RunSet:
    """The newest runs that a filter lets through, and that are over."""
    ended = (row for row in all_rows(store, narrowed) if row.ended_at is not None)
    rows = list(islice(ended, most + 1))
    return RunSet(tuple(rows[:most]), len(rows) > most)


def chosen(store: Store, runs: Sequence[str]) -> RunSet:
    """These very runs, those that are over.

    Raises:
        NotThere: one of them is not there.
    """
    rows = []
    for run in dict.fromkeys(runs):
        with there(run):
            rows.append(store.get(run).row())
    return RunSet(tuple(row for row in rows if row.ended_at is not None))


def share(passed: int, of: int) -> float | None:
    """A share rounded to four places; None of nothing."""
    return round(passed / of, 4) if of else None


def mean_share(pairs: Iterable[tuple[int, int] | None]) -> float | None:
    """The mean of shares, leaving out those of nothing."""
    shares = [passed / total for passed, total in filter(None, pairs) if total]
    return round(sum(shares) / len(shares), 4) if shares else None
