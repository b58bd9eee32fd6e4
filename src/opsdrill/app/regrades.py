"""Regrades that a serving process does beside its other work, one after the other.

Each is begun, looked at while it goes on, cancelled or forgotten. What it kept before it was
cancelled stays. A process that ends cancels those that are under way.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from threading import Event, Lock
from typing import Literal

from opsdrill.app.regrade import Regrading, chosen, regrading_in
from opsdrill.app.wiring import Place
from opsdrill.errors import Conflict, InvalidInput, NotThere, OpsDrillError, Problem
from opsdrill.grading.flips import Flip
from opsdrill.model.problem import dotted
from opsdrill.runner.regrader import Edited
from opsdrill.scenarios.load import LoadedScenario
from opsdrill.store.store import RunFilter, Store

State = Literal["waiting", "running", "done", "failed", "cancelled"]

WAITING_LIMIT = 5
"""Regrades that may wait or be under way."""
KEPT_LIMIT = 50
"""Regrades that are remembered."""
FLIPS_LIMIT = 10_000
"""Flips that are remembered of one; the summary counts all of them."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be graded again.

    Args:
        runs: whole ids; None: those that the filter lets through.
        narrowed: the filter; of runs by edited rules only those of that scenario are meant.
        rules: edited rules; None: each run's own.
        preview: only tell what would flip.
        by: who wants it.
    """

    runs: Sequence[str] | None = None
    narrowed: RunFilter = field(default_factory=RunFilter)
    rules: LoadedScenario | None = None
    preview: bool = True
    by: str | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """A regrade as it stands.

    Args:
        id: its name.
        state: what becomes of it.
        preview: nothing is kept.
        by: who wants it.
        created_at: when it was asked for.
        ended_at: when it was over.
        total: runs that are looked at; 0 as long as they are not counted.
        seen: how many were looked at so far.
        graded: how many of them were graded.
        changed: how many of those got another grade than their latest.
        flips: what is judged otherwise, the first `FLIPS_LIMIT`.
        flip_count: how many flips there are.
        summary: how many runs flipped, by scenario, rule, before and after; the most first.
        notes: what is to be said of runs.
        reason: why it failed.
    """

    id: str
    state: State
    preview: bool
    by: str | None
    created_at: datetime
    ended_at: datetime | None = None
    total: int = 0
    seen: int = 0
    graded: int = 0
    changed: int = 0
    flips: tuple[Flip, ...] = ()
    flip_count: int = 0
    summary: tuple[Summary, ...] = ()
    notes: tuple[str, ...] = ()
    reason: str | None = None

    @property
    def over(self) -> bool:
        """Nothing more will become of it."""
        return self.state not in ("waiting", "running")


@dataclass(frozen=True, slots=True)
class Summary:
    """How many runs flipped in one way."""

    scenario: str
    rule: str
    before: str
    after: str
    runs: int


class Regrades:
    """The regrades of one process. Several threads may use it.

    Args:
        place: where it works.
        store: of the place, open until `close`.
        clock: the present moment, in UTC.
    """

    def __init__(
        self,
        place: Place,
        store: Store,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._place = place
        self._store = store
        self._clock = clock
        self._known: dict[str, Standing] = {}
        self._ends: dict[str, Event] = {}
        self._lock = Lock()
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="opsdrill-regrade")

    def begin(self, wish: Wish) -> Standing:
        """Grade runs again, as soon as those before it are over.

        Raises:
            InvalidInput: a run is not there; names its place.
            Conflict: too many wait already.
        """
        self._check(wish.runs or ())
        with self._lock:
            if sum(not known.over for known in self._known.values()) >= WAITING_LIMIT:
                raise Conflict(
                    f"{WAITING_LIMIT} regrades are under way already",
                    hint="wait until one is over, or cancel one",
                )
            self._forget_oldest()
            id = secrets.token_hex(8)
            new = Standing(id, "waiting", wish.preview, wish.by, self._clock())
            self._known[id] = new
            self._ends[id] = end = Event()
        self._threads.submit(self._work, id, wish, end)
        return new

    def get(self, id: str) -> Standing:
        """A regrade as it stands. Raises NotThere where there is none, or it was forgotten."""
        with self._lock:
            if id not in self._known:
                raise NotThere("regrade", id)
            return self._known[id]

    def all(self) -> list[Standing]:
        """All that are remembered, the newest first, without their flips."""
        with self._lock:
            return [replace(known, flips=()) for known in reversed(self._known.values())]

    def cancel(self, id: str) -> None:
        """Cancel a regrade; one that is over is forgotten. Raises NotThere."""
        with self._lock:
            known = self._known.get(id)
            if known is None:
                raise NotThere("regrade", id)
            self._ends[id].set()
            if known.over:
                del self._known[id], self._ends[id]

    def close(self) -> None:
        """Cancel all of them, and wait until they have stopped."""
        with self._lock:
            for end in self._ends.values():
                end.set()
        self._threads.shutdown(cancel_futures=True)

    def _check(self, runs: Sequence[str]) -> None:
        missing = [
            Problem(dotted(("runs", index)), f"there is no run {run[:200]!r}")
            for index, run in enumerate(runs)
            if run not in self._store.find(run)
        ]
        if missing:
            raise InvalidInput("the request is refused", missing)

    def _forget_oldest(self) -> None:
        over = [id for id, known in self._known.items() if known.over]
        for id in over[: max(0, len(self._known) - KEPT_LIMIT + 1)]:
            del self._known[id], self._ends[id]

    def _set(self, standing: Standing) -> None:
        with self._lock:
            if standing.id in self._known:
                self._known[standing.id] = standing

    def _work(self, id: str, wish: Wish, end: Event) -> None:
        with self._lock:
            standing = replace(self._known[id], state="running")
            self._known[id] = standing
        try:
            self._grade(standing, wish, end)
        except OpsDrillError as error:
            self._fail(id, error.message)
        except Exception:
            log.exception("the regrade %s failed", id)
            self._fail(id, "something went wrong here; the server's log says what")

    def _fail(self, id: str, reason: str) -> None:
        with self._lock:
            known = self._known.get(id)
        if known is not None:
            self._set(replace(known, state="failed", reason=reason, ended_at=self._clock()))

    def _grade(self, standing: Standing, wish: Wish, end: Event) -> None:
        edited = Edited(wish.rules.scenario, wish.rules.version) if wish.rules else None
        runs = list(dict.fromkeys(wish.runs)) if wish.runs is not None else self._chosen(wish)
        flips: list[Flip] = []
        with regrading_in(
            self._place, self._store, runs, edited, preview=wish.preview, by=wish.by
        ) as work:
            standing = replace(standing, total=work.total)
            self._set(standing)
            if not end.is_set():
                for some in work:
                    flips += some[: FLIPS_LIMIT - len(flips)]
                    standing = _grown(standing, work, flips)
                    self._set(standing)
                    if end.is_set():
                        break
        # One that was looked at whole is done, whoever cancelled it meanwhile.
        state: State = "done" if standing.seen >= standing.total else "cancelled"
        self._set(replace(standing, state=state, ended_at=self._clock()))

    def _chosen(self, wish: Wish) -> list[str]:
        narrowed = wish.narrowed
        if wish.rules is not None and narrowed.scenario is None:
            narrowed = replace(narrowed, scenario=wish.rules.scenario.key)
        return chosen(self._store, narrowed)


def _grown(standing: Standing, work: Regrading, flips: Sequence[Flip]) -> Standing:
    return replace(
        standing,
        seen=work.seen,
        graded=work.graded,
        changed=work.changed,
        flips=tuple(flips),
        flip_count=sum(work.summary.values()),
        summary=tuple(Summary(*key, count) for key, count in work.summary.most_common()),
        notes=tuple(work.notes()),
    )
