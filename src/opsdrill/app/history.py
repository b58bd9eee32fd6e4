"""The runs that are kept: list, show, their evidence, delete."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import get_args

from opsdrill.app import documents
from opsdrill.app.recovery import recover
from opsdrill.app.run_rows import row_value
from opsdrill.app.stores import opened_store
from opsdrill.app.wiring import Place
from opsdrill.errors import NotThere, UnknownName, UsageError
from opsdrill.evidence.recorder import assemble
from opsdrill.evidence.stories import Differences, differences
from opsdrill.hosts.lease import waits
from opsdrill.model.event import JobEvent, NoJob
from opsdrill.model.host import ChangedFile, HostFacts
from opsdrill.model.job import JobRecord
from opsdrill.model.result import Result, RunState, Verdict
from opsdrill.model.run import RunSpec
from opsdrill.model.ticket import Ticket
from opsdrill.runner.owner import is_gone, this_process
from opsdrill.store.folder import left_behind
from opsdrill.store.store import Order, Page, RunFilter, RunRow, Store, StoredGrade, StoredRun

__all__ = [
    "STATES", "VERDICTS", "Differences", "Kept", "Row", "delete", "delete_in", "evidence",
    "evidence_in", "kept_runs", "page", "page_document", "page_in", "show", "there",
    "unfinished", "waiting_runs", "waits_told", "wanted", "whole_id",
]  # fmt: skip

STATES: tuple[RunState, ...] = get_args(RunState)
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
Row = RunRow
"""One run of a listing."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Everything that is shown of one run."""

    run: StoredRun
    result: Result
    grades: tuple[StoredGrade, ...]
    hosts: tuple[tuple[HostFacts, tuple[ChangedFile, ...] | None], ...]
    differences: Differences | None = None
    """Where the agent's own report and what was seen differ."""


@contextmanager
def kept_runs(place: Place) -> Iterator[Store]:
    """The store, after what killed processes left behind was removed and marked."""
    with opened_store(place) as store:
        if store.running():
            asyncio.run(recover(place, store))
        yield store


def wanted(
    *,
    scenario: str | None = None,
    agent: str | None = None,
    state: str | None = None,
    verdict: str | None = None,
    batch: str | None = None,
) -> RunFilter:
    """What a listing is narrowed to.

    Raises:
        UnknownName: a state or a verdict that there is not.
    """
    for kind, name, known in (("state", state, STATES), ("verdict", verdict, VERDICTS)):
        if name is not None and name not in known:
            raise UnknownName(kind, name, known)
    return RunFilter(
        scenario=scenario,
        agent=agent,
        state=next((known for known in STATES if known == state), None),
        verdict=next((known for known in VERDICTS if known == verdict), None),
        batch=batch,
    )


def page(place: Place, narrowed: RunFilter, *, limit: int, cursor: str | None) -> Page:
    """Some runs, the newest first; one that waits for hosts says so in its reason."""
    with kept_runs(place) as store:
        return page_in(store, narrowed, limit=limit, cursor=cursor)


def page_in(
    store: Store,
    narrowed: RunFilter,
    *,
    limit: int,
    cursor: str | None,
    order: Order = "-created_at",
    count_to: int | None = None,
) -> Page:
    """As `page`, in a store that is open, in either order, and counted as `Store.page` counts."""
    found = store.page(narrowed, limit=limit, cursor=cursor, order=order, count_to=count_to)
    if all(row.state != "running" for row in found.rows):
        return found
    waiting = waiting_runs(store)
    return replace(found, rows=tuple(waits_told(row, waiting) for row in found.rows))


def waits_told(row: RunRow, waiting: Mapping[str, str]) -> RunRow:
    """The row; what its run is waiting for is its reason."""
    waits = waiting.get(row.id) if row.state == "running" else None
    return replace(row, reason=waits) if waits else row


def waiting_runs(store: Store) -> dict[str, str]:
    """What each run that waits for hosts is waiting for."""
    return waits(store.leases(this_process(), is_gone).leases())


def page_document(found: Page, *, lines: bool) -> bytes:
    """A page of runs for programs."""
    rows = [row_value(row) for row in found.rows]
    return (
        documents.lines(rows)
        if lines
        else documents.document("runs", "runs", rows, cursor=found.cursor)
    )


def show(place: Place, run: str) -> Kept:
    """Everything about one run.

    Raises:
        UsageError: no run's id begins like this, or several do.
    """
    with kept_runs(place) as store:
        name = whole_id(store, run)
        kept = store.get(name)
        record = store.record(name)
        return Kept(
            kept,
            kept.result or unfinished(kept.spec, kept.state),
            tuple(store.grades(name)),
            tuple(store.hosts(name)),
            differences(record) if record else None,
        )


@contextmanager
def there(run: str) -> Iterator[None]:
    """What a store is asked of a run that may not be there. Raises NotThere."""
    try:
        yield
    except KeyError:
        raise NotThere("run", run) from None


def evidence(place: Place, run: str) -> JobRecord:
    """The job record; of a run that was killed, what was recorded up to that point.

    Raises:
        UsageError: no run's id begins like this, or several do.
    """
    with kept_runs(place) as store:
        return evidence_in(store, whole_id(store, run))


def evidence_in(store: Store, run: str) -> JobRecord:
    """As `evidence`, of a run by its whole id in a store that is open."""
    sealed = store.record(run)
    if sealed is not None:
        return sealed
    stored = store.get(run)
    scenario, result = stored.spec.scenario, stored.result
    ticket = Ticket(title=scenario.ticket_title, body=scenario.ticket_body)
    events: list[JobEvent] = [event for _, event in store.events(run)]
    if not events and result and stored.state != "interrupted":
        # It ended before its agent began, for the reason of its result; no recording broke off.
        events = [NoJob(at=stored.ended_at, reason=result.reason, fault=result.fault)]
    return assemble(ticket, events)


def delete(place: Place, runs: Sequence[str]) -> list[str]:
    """Delete runs whole; gives their ids. All names are looked up before the first is deleted.

    Raises:
        UsageError: no run's id begins like this, several do, or a run is still running.
    """
    with kept_runs(place) as store:
        names = list(dict.fromkeys(whole_id(store, run) for run in runs))
        for name in names:
            delete_in(place, store, name)
        return names


def delete_in(place: Place, store: Store, run: str) -> None:
    """Delete a run by its whole id, in a store that is open, with what its agent left.

    Raises:
        NotThere: there is no such run.
        Conflict: it is running.
    """
    with there(run):
        store.delete(run)
    shutil.rmtree(left_behind(place.home, run), ignore_errors=True)


def whole_id(store: Store, begins: str) -> str:
    """The id of the run that `begins` names.

    Raises:
        UsageError: no run's id begins like this, or several do.
    """
    found = store.find(begins) if begins else []
    if begins in found:
        return begins
    if not found:
        raise UsageError(f"there is no run {begins!r}", hint="`opsdrill runs list` shows them")
    if len(found) > 1:
        raise UsageError(f"more than one run begins with {begins!r}", hint=", ".join(found))
    return found[0]


def unfinished(spec: RunSpec, state: RunState) -> Result:
    """The result of a run that has none yet."""
    return Result(
        run=spec.id,
        scenario=spec.scenario.key,
        agent=str(spec.agent),
        scenario_version=spec.scenario_version,
        state=state,
    )
