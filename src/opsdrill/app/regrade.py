"""Grade kept runs again, with their own rules or edited ones, and tell what flips."""

from __future__ import annotations

import getpass
import os
import platform
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial

from opsdrill.app import documents, scenarios
from opsdrill.app.history import kept_runs, whole_id
from opsdrill.app.imports import WITHOUT
from opsdrill.app.run_rows import all_rows
from opsdrill.app.secrets import mask_for
from opsdrill.app.shelf import kept_scenarios
from opsdrill.app.stores import opener
from opsdrill.app.wiring import Place
from opsdrill.grading.explain import counted
from opsdrill.grading.flips import Flip
from opsdrill.runner.regrader import (
    ALONE,
    Chunk,
    Edited,
    Manner,
    regrade_here,
    regrade_in_processes,
)
from opsdrill.store.store import RunFilter, Store

__all__ = ["Flip", "Order", "Regrading", "document", "flip_lines", "regrading", "summary_rows"]

EXAMPLES = 3
"""Runs that a note names."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be graded again.

    Args:
        runs: ids, or how they begin; None: every run that has a job record.
        scenario: where the rules are taken from; None: each run's own.
        preview: only tell what would flip.
    """

    runs: Sequence[str] | None = None
    scenario: str | None = None
    preview: bool = False


class Regrading:
    """Runs that are being graded again; to be walked through once, for the flips as they come.

    Args:
        total: how many runs there are.
        chunks: what becomes of them.

    Attributes:
        seen: how many were looked at so far.
        graded: how many of them were graded.
        changed: how many of those got a grade that is not their latest in every respect. Only such
            a grade is kept.
        summary: how many runs flipped, by scenario, rule, before and after.
    """

    def __init__(self, total: int, chunks: Iterator[Chunk]) -> None:
        self.total = total
        self.seen = self.graded = self.changed = 0
        self.summary: Counter[tuple[str, str, str, str]] = Counter()
        self._chunks = chunks
        self._noted: dict[str, list[str]] = {}
        self._counts: Counter[str] = Counter()

    def __iter__(self) -> Iterator[list[Flip]]:
        for chunk in self._chunks:
            self.seen += chunk.seen
            self.graded += chunk.graded
            self.changed += chunk.changed
            for flip in chunk.flips:
                self.summary[flip.scenario, flip.rule, flip.before, flip.after] += 1
            for text, run in chunk.notes:
                self._counts[text] += 1
                names = self._noted.setdefault(text, [])
                if len(names) < EXAMPLES:
                    names.append(run)
            yield chunk.flips

    def notes(self) -> list[str]:
        """What is to be said of runs, a sentence for each thing, with some of them by name."""
        said = []
        for text, names in self._noted.items():
            count = self._counts[text]
            more = ", ..." if count > len(names) else ""
            said.append(f"{counted(count, 'run')} ({', '.join(names)}{more}): {text}")
        return said


@contextmanager
def regrading(place: Place, order: Order) -> Iterator[Regrading]:
    """Grade kept runs again; what is judged otherwise becomes another grade, earlier ones stay.

    Raises:
        UsageError: no such run, or no such scenario.
        InvalidInput: the scenario is broken.
    """
    with kept_runs(place) as store:
        edited = None
        if order.scenario is not None:
            loaded = scenarios.one(place, order.scenario, kept_scenarios(store))
            edited = Edited(loaded.scenario, loaded.version)
        if order.runs is None:
            key = edited.scenario.key if edited else None
            names = chosen(store, RunFilter(scenario=key))
        else:
            names = list(dict.fromkeys(whole_id(store, run) for run in order.runs))
        work = regrading_in(place, store, names, edited, preview=order.preview, by=_who())
        with work as found:
            yield found


@contextmanager
def regrading_in(
    place: Place,
    store: Store,
    runs: Sequence[str],
    edited: Edited | None,
    *,
    preview: bool,
    by: str | None,
) -> Iterator[Regrading]:
    """As `regrading`, for runs by their whole ids in a store that is open.

    Args:
        edited: rules in place of the runs' own.
        preview: only tell what would flip.
        by: who wants it.
    """
    manner = Manner(edited, frozenset({WITHOUT}), preview, by, partial(mask_for, place))
    chunks = (
        regrade_here(store, runs, manner)
        if len(runs) <= ALONE
        else regrade_in_processes(opener(place), runs, manner)
    )
    with closing(chunks):
        yield Regrading(len(runs), chunks)


def chosen(store: Store, narrowed: RunFilter) -> list[str]:
    """The ids of all runs that are done and that a filter lets through, the newest first."""
    return [row.id for row in all_rows(store, replace(narrowed, state="done"))]


def _who() -> str:
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = f"user {os.getuid()}"
    return f"{name}@{platform.node() or 'localhost'}"


def summary_rows(done: Regrading) -> list[dict[str, object]]:
    """How many runs flipped, by scenario and rule; the most first."""
    return [
        {"scenario": scenario, "rule": rule, "before": before, "after": after, "runs": count}
        for (scenario, rule, before, after), count in sorted(
            done.summary.items(), key=lambda item: (-item[1], item[0])
        )
    ]


def flip_lines(flips: Sequence[Flip]) -> bytes:
    """Flips for programs, one a line."""
    return documents.lines([asdict(flip) for flip in flips])


def document(done: Regrading, flips: Sequence[Flip], *, preview: bool) -> bytes:
    """Everything that flipped, for programs."""
    rows = [asdict(flip) for flip in flips]
    return documents.document(
        "regrade",
        "flips",
        rows,
        summary=summary_rows(done),
        graded=done.graded,
        changed=done.changed,
        preview=preview,
        notes=done.notes(),
    )
