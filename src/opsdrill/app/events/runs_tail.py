"""The tail of many runs: the states that they come to, for all who follow a batch, or everything.

What a phase and a step say is passed on while it is heard; the state of a run is told even to one
who was away.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from opsdrill.app import documents
from opsdrill.app.events.news import News, told
from opsdrill.app.events.progress import (
    MOST_RUNS,
    OVER,
    STAGES,
    Progress,
    checked,
    progress,
)
from opsdrill.app.events.tail import Tail
from opsdrill.app.own_folders import told_phase, told_row, without_paths
from opsdrill.app.run_rows import row_value
from opsdrill.errors import UsageError
from opsdrill.runner.engine import RunEvent
from opsdrill.store.store import RunFilter, RunRow, Store

KEPT_OVER = 1000
"""Runs that are over and still remembered, for those who were away."""
_NEWEST = 200


@dataclass(slots=True)
class RunsFollower:
    """What one follower of many runs was told, since it joined."""

    stages: dict[str, int]

    def takes(self, news: News) -> bool:
        if news.mark is None:
            return True
        run, stage = news.mark
        assert isinstance(run, str) and isinstance(stage, int)
        if stage <= self.stages.get(run, 0):
            return False
        self.stages[run] = stage
        if len(self.stages) > MOST_RUNS:
            del self.stages[next(iter(self.stages))]
        return True


class RunsTail(Tail):
    """Tells the states that runs come to.

    Args:
        batch: whose runs; None: all of them.
        folders: folders of this machine that are not told.
    """

    def __init__(self, store: Store, batch: str | None, folders: Sequence[str] = ()) -> None:
        super().__init__(f"events of the batch {batch}" if batch else "events of all runs")
        self._store = store
        self._folders = folders
        self._batch = batch
        self._rows: dict[str, tuple[datetime, int]] = {}
        """When each run was created, and how far it came, in the order created."""
        self._heard: set[str] = set()
        self._strange: set[str] = set()
        """Runs of other batches."""
        self._began = datetime.now(UTC)
        self._first = True

    def hear(self, event: RunEvent) -> None:
        if self._batch is None or event.run in self._rows:
            about: dict[str, object] = {"run": event.run}
            if event.step is not None:
                line = without_paths(event.step, self._folders)
                self.window.add([told("step", {**about, "line": line})])
            if event.phase is not None:
                phase = told_phase(event.phase, self._folders).model_dump(mode="json")
                self.window.add([told("phase", {**about, "phase": phase})])
        _, stage = self._rows.get(event.run, (None, 0))
        begun = event.phase is not None and stage < STAGES["running"]
        if event.run not in self._strange and (begun or event.result is not None):
            self._heard.add(event.run)
            self.wake()

    async def look(self) -> bool:
        heard, self._heard = self._heard, set()
        rows = await asyncio.to_thread(self._first_look if self._first else self._look, heard)
        fresh = []
        for row in sorted(rows, key=lambda row: (row.created_at, row.id)):
            stage = STAGES[row.state]
            if stage > self._rows.get(row.id, (row.created_at, 0))[1]:
                self._learn(row, stage)
                # The first look finds what followers are told when they join.
                if not self._first:
                    fresh.append(self._news(row, str(self._progress())))
        self._first = False
        self.window.add(fresh)
        return bool(fresh)

    async def missed(self, follower: RunsFollower, last: Progress | None) -> AsyncIterator[News]:
        """What one who joins was not told yet.

        Args:
            follower: told here, and ever after.
            last: where it stood; None: it never followed.
        """
        await self.ready.wait()
        since = last.since if last else self._since()
        rows = await asyncio.to_thread(self._all_since, since)
        lost = rows is None or (last is not None and not _fits(last, rows))
        if lost:
            yield told("reset", {"reason": "what happened meanwhile cannot be told: list the runs"})
            since, last = self._since(), None
            rows = await asyncio.to_thread(self._all_since, since)
        stages = _known(last, rows or (), everything=self._batch is not None)
        follower.stages.update(stages)
        for row in rows or ():
            stage = STAGES[row.state]
            if stage > stages[row.id]:
                stages[row.id] = follower.stages[row.id] = stage
                yield self._news(row, str(progress(since, stages)))

    def _first_look(self, heard: Iterable[str]) -> list[RunRow]:
        """On a thread: all runs that count."""
        going = self._look(heard)
        since = self._since([row.created_at for row in going if not row.over])
        return self._all_since(since) or going

    def _look(self, heard: Iterable[str]) -> list[RunRow]:
        """On a thread: the runs that may have come further."""
        found = {row.id: row for row in self._going()}
        going = [run for run, (_, stage) in self._rows.items() if stage < OVER]
        for run in {*heard, *going} - set(found):
            try:
                row = self._store.get(run).row()
            except KeyError:
                continue
            if self._batch in (None, row.batch):
                found[run] = row
            elif len(self._strange) < MOST_RUNS:
                self._strange.add(run)
        return list(found.values())

    def _going(self) -> list[RunRow]:
        """The runs that are not over, and the newest, which may have begun and ended meanwhile."""
        narrowed = RunFilter(batch=self._batch)
        rows: list[RunRow] = []
        for going in (replace(narrowed, state="running"), replace(narrowed, state="planned")):
            rows += self._store.page(going, limit=1000).rows
        newest = narrowed if self._batch else replace(narrowed, since=self._began)
        return [*rows, *self._store.page(newest, limit=_NEWEST).rows]

    def _all_since(self, since: datetime) -> list[RunRow] | None:
        """On a thread: the runs created since, the oldest first; None: too many."""
        narrowed = RunFilter(batch=self._batch, since=since)
        rows: list[RunRow] = []
        cursor: str | None = None
        while len(rows) <= MOST_RUNS:
            page = self._store.page(narrowed, limit=1000, cursor=cursor, order="created_at")
            rows += page.rows
            cursor = page.cursor
            if cursor is None:
                return sorted(rows, key=lambda row: (row.created_at, row.id))
        return None

    def _since(self, going: Iterable[datetime] = ()) -> datetime:
        """The moment from which on runs count for one who joins now.

        Args:
            going: when runs were created that are not over, beside those known.
        """
        if self._batch is not None:
            return datetime(1970, 1, 1, tzinfo=UTC)
        known = [at for at, stage in self._rows.values() if stage < OVER]
        return min([*known, *going, self._began])

    def _learn(self, row: RunRow, stage: int) -> None:
        late = row.id not in self._rows and any(at > row.created_at for at, _ in self._latest())
        self._rows[row.id] = (row.created_at, stage)
        if late:
            self._rows = dict(sorted(self._rows.items(), key=lambda each: (each[1][0], each[0])))
        if self._batch is None and len(self._rows) > 2 * KEPT_OVER:
            self._forget()

    def _latest(self) -> list[tuple[datetime, int]]:
        return [next(reversed(self._rows.values()))] if self._rows else []

    def _forget(self) -> None:
        """Forget the oldest runs that are over, as far as no older one still goes on."""
        for run, (_, stage) in list(self._rows.items())[:-KEPT_OVER]:
            if stage < OVER:
                return
            del self._rows[run]

    def _progress(self) -> Progress:
        first = next(iter(self._rows.values()))[0]
        since = self._since() if self._batch else first
        return progress(since, {run: stage for run, (_, stage) in self._rows.items()})

    def _news(self, row: RunRow, id: str) -> News:
        data = documents.written(row_value(told_row(row, self._folders)))
        return News("run", data, id, (row.id, STAGES[row.state]))


def _fits(last: Progress, rows: Sequence[RunRow]) -> bool:
    """Whether these are still the runs of which a progress tells, and later ones."""
    count = len(last.stages)
    return count <= len(rows) and checked(row.id for row in rows[:count]) == last.check


def _known(last: Progress | None, rows: Sequence[RunRow], *, everything: bool) -> dict[str, int]:
    """How far a follower knows each run."""
    if last is not None:
        digits = last.stages.ljust(len(rows), "0")
        return {row.id: int(digit) for row, digit in zip(rows, digits, strict=False)}
    over = 0 if everything else OVER
    return {row.id: over if STAGES[row.state] == OVER else 0 for row in rows}


def check_batch(store: Store, batch: str) -> None:
    """Raises NotThere for a batch that is not there, UsageError for one too big to follow."""
    size = store.batch(batch).runs
    if size > MOST_RUNS:
        raise UsageError(
            f"the batch has {size} runs, and events tell of {MOST_RUNS} at most",
            hint="follow single runs, or list the batch now and then",
        )
