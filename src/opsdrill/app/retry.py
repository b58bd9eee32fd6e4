"""Which runs may be retried: those that errored, and only by what is configured here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from opsdrill.app import agents, labs
from opsdrill.app.history import there
from opsdrill.app.run_rows import all_rows
from opsdrill.app.wiring import Place
from opsdrill.errors import Conflict
from opsdrill.model.run import LabChoice, RunSpec
from opsdrill.store.store import RunFilter, Store, StoredRun

RETRY_OF = "retry_of"
"""The label that leads from a run back to the one that it repeats."""

_WAS = {"passed": "passed", "failed": "failed", "cancelled": "was cancelled"}


def retriable(place: Place, store: Store, run: str) -> RunSpec:
    """A run that errored, or was interrupted, and that could be started now by names alone.

    Raises:
        NotThere: there is no such run.
        Conflict: it is not over, has a verdict, was retried already, or was started with an agent
            or in a lab that is not configured here.
    """
    spec = _errored(store, run).spec
    if spec.agent not in agents.names_only(place).values():
        raise _strange(run, "agent")
    if not any(spec.lab == lab for lab in _labs(place)):
        raise _strange(run, "lab")
    return spec


def errored(store: Store, batch: str) -> list[str]:
    """The runs of a batch that errored or were interrupted, and were not retried yet."""
    found = RunFilter(batch=batch)
    rows = [
        *all_rows(store, replace(found, verdict="error"), "created_at"),
        *all_rows(store, replace(found, state="interrupted"), "created_at"),
    ]
    ids = dict.fromkeys(row.id for row in sorted(rows, key=lambda row: row.created_at))
    return [run for run in ids if _retried(store, run) is None]


def unfinished(store: Store, batch: str) -> list[str]:
    """The runs of a batch that are not over, those that work first."""
    found = RunFilter(batch=batch)
    rows = [
        *all_rows(store, replace(found, state="running"), "created_at"),
        *all_rows(store, replace(found, state="planned"), "created_at"),
    ]
    return [row.id for row in rows]


def _errored(store: Store, run: str) -> StoredRun:
    with there(run):
        stored = store.get(run)
    if not stored.over:
        raise Conflict(f"run {run} is not over yet", hint="cancel it or wait for it first")
    verdict = stored.result.verdict if stored.result else None
    if stored.state != "interrupted" and verdict != "error":
        was = verdict or stored.state
        raise Conflict(f"run {run} did not error: it {_WAS.get(was, was)}")
    if (again := _retried(store, run)) is not None:
        raise Conflict(f"run {run} was retried already, as {again}")
    return stored


def _retried(store: Store, run: str) -> str | None:
    rows = store.page(RunFilter(labels=((RETRY_OF, run),)), limit=1).rows
    return rows[0].id if rows else None


def _labs(place: Place) -> Iterator[LabChoice]:
    """Every lab that may be named, as runs keep it."""
    for name in (None, *labs.names(place)):
        lab = labs.named_only(name, place)
        yield lab
        yield from labs.candidates(lab)


def _strange(run: str, what: str) -> Conflict:
    return Conflict(
        f"run {run} cannot be retried: its {what} is none that is configured here now",
        hint=f"start a new run, with the {what} by its name",
    )
