"""The store protocol: runs, grades, evidence, host answers and files, kept for good.

A run's row is written first as `planned`; everything that a phase learned is stored before the
phase ends, keyed by run and attempt, so that a killed run stays readable. Grades are added, never
overwritten. Calls are synchronous and short; several threads and processes may make them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from opsdrill.errors import Fault
from opsdrill.hosts.lease import LEASE_SECONDS, LeaseBook
from opsdrill.model.event import JobEvent
from opsdrill.model.host import ChangedFile, HostAnswer, HostFacts
from opsdrill.model.job import JobRecord
from opsdrill.model.result import Grade, Phase, Result, RunState, Verdict
from opsdrill.model.run import RunSpec
from opsdrill.store import course
from opsdrill.store.access import AccessBook
from opsdrill.store.requests import RequestBook
from opsdrill.store.shelf import Shelf

Order = Literal["-created_at", "created_at"]
"""How a listing of runs is sorted: the newest first, or the oldest."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that works on a run, told apart from any other for good.

    `boot` is the machine's boot id, `started` the process's start in clock ticks since then.
    """

    machine: str
    boot: str
    pid: int
    started: int


@dataclass(frozen=True, slots=True)
class StoredGrade:
    """One grade of a run; `cause` is `run` or `regrade`."""

    number: int
    grade: Grade
    cause: str
    created_at: datetime
    by: str | None = None


@dataclass(frozen=True, slots=True)
class Sealed:
    """What a run is graded again by, each part as JSON that is not read yet; None: not kept."""

    run: str
    state: RunState
    scenario: str
    """The scenario's key."""
    spec: bytes
    record: bytes | None
    answers: bytes | None
    latest: bytes | None
    """The latest grade."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as it stands in the store."""

    spec: RunSpec
    state: RunState
    attempt: int
    owner: Owner | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    result: Result | None
    """None until the run is over."""
    phases: tuple[Phase, ...] = ()

    @property
    def over(self) -> bool:
        """Nothing works on it any more."""
        return self.state in course.OVER

    def row(self) -> RunRow:
        """The run as a listing shows it, with its texts whole."""
        spec, result = self.spec, self.result
        return RunRow(
            id=spec.id,
            batch=spec.batch,
            scenario=spec.scenario.key,
            title=spec.scenario.title,
            agent=str(spec.agent),
            lab=spec.lab.name,
            repeat=spec.repeat,
            state=self.state,
            verdict=result.verdict if result else None,
            fault=result.fault if result else None,
            reason=result.reason if result else "",
            compliance=course.pair(result.compliance) if result else None,
            remediation=course.pair(result.remediation) if result else None,
            after_agent=result.after_agent if result else False,
            created_at=self.created_at,
            ended_at=self.ended_at,
        )


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as a listing shows it, without reading its content."""

    id: str
    batch: str | None
    scenario: str
    title: str
    agent: str
    lab: str
    repeat: int
    state: RunState
    verdict: Verdict | None
    fault: str | None
    reason: str
    compliance: tuple[int, int] | None
    remediation: tuple[int, int] | None
    after_agent: bool
    created_at: datetime
    ended_at: datetime | None

    @property
    def over(self) -> bool:
        """Nothing works on it any more."""
        return self.state in course.OVER


@dataclass(frozen=True, slots=True)
class RunFilter:
    """What a listing is narrowed to; None leaves a thing open, and all that is said must hold."""

    scenario: str | None = None
    agent: str | None = None
    state: RunState | None = None
    verdict: Verdict | None = None
    batch: str | None = None
    fault: Fault | None = None
    scenario_tag: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    """Names and values; a run must have them all."""
    since: datetime | None = None
    """Runs created then or later."""
    until: datetime | None = None
    """Runs created before then."""
    lab: str | None = None
    """Its name."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows in order, and the cursor of the next page (None at the end).

    A page stays right while new rows arrive: the cursor names the last row seen.
    """

    rows: tuple[RunRow, ...] = field(default_factory=tuple)
    cursor: str | None = None
    count: int | None = None
    """How many rows all pages have, up to a bound; None: nobody asked."""


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A batch as a listing shows it: its runs, counted."""

    id: str
    created_at: datetime
    """When its first run was created."""
    runs: int
    states: Mapping[RunState, int]
    """How many of its runs are in each state; those that none is in are left out."""
    verdicts: Mapping[Verdict, int]
    """How many have each verdict; runs without one are left out."""
    scenarios: tuple[str, ...]
    """Their keys, sorted."""
    agents: tuple[str, ...]
    by: str | None = None
    """The label `by` of its first run: who started it, where that is known."""


@dataclass(frozen=True, slots=True)
class BatchPage:
    """Some batches, the newest first, and the cursor of the next page (None at the end)."""

    rows: tuple[BatchRow, ...] = ()
    cursor: str | None = None


class Store(Protocol):
    """Keeps runs and what is known of them.

    Every call raises KeyError for a run that is not there, and StoreError where the store cannot
    be read or written; then nothing was changed.
    """

    def close(self) -> None: ...

    # runs
    def plan(self, spec: RunSpec, owner: Owner | None = None) -> None:
        """Keep a new run as `planned`; one whose id is there already stays as it is.

        Args:
            spec: the run.
            owner: the process that will begin it, as far as that is known.

        Raises:
            UsageError: an id or a batch of more than 200 characters.
            StoreError: a support file was never put.
        """

    def plan_all(self, specs: Sequence[RunSpec], owner: Owner | None = None) -> set[str]:
        """Keep new runs as `plan` does, all of them or none; returns those that are `planned` now,
        also from before.

        Args:
            specs: the runs, each id once.
            owner: as of `plan`.

        Raises:
            UsageError, StoreError: as `plan`.
        """

    def add(
        self,
        spec: RunSpec,
        record: JobRecord,
        answers: Sequence[HostAnswer],
        result: Result,
        grade: Grade,
    ) -> None:
        """Keep a run that is over already, whole or not at all; a known id stays as it is.

        Raises:
            UsageError: as `plan`; a spec with support files, or a result that is no end.
        """

    def begin(self, run: str, owner: Owner) -> int:
        """The run is `running` under this owner; returns the attempt's number, from 1.

        Raises:
            Conflict: it is running already, or it is over; an interrupted run may begin again.
        """

    def phase(self, run: str, attempt: int, phase: Phase) -> None:
        """Keep a phase's present state; a later call for the same name replaces it."""

    def finish(self, run: str, result: Result, grade: Grade | None) -> None:
        """The run is over: its state, result and first grade in one transaction.

        A run has one end: for one that is over already nothing changes.
        """

    def interrupt(self, run: str, reason: str) -> None:
        """The run's process is no more: state `interrupted`, running phases likewise.

        For a run that is over already nothing changes.
        """

    def running(self) -> list[tuple[str, Owner | None]]:
        """The runs that claim to be running, with the owner that must still live."""

    def planned(self) -> list[tuple[str, Owner | None]]:
        """The runs that are still to begin, with the owner that must still live for that."""

    def get(self, run: str) -> StoredRun:
        """The run as it stands; its result reads under the latest grade, as its row does."""

    def find(self, prefix: str) -> list[str]:
        """Ids that start with `prefix`, sorted, at most 20."""

    def page(
        self,
        filter: RunFilter,
        *,
        limit: int = 50,
        cursor: str | None = None,
        order: Order = "-created_at",
        count_to: int | None = None,
    ) -> Page:
        """One page of a listing.

        Args:
            filter: which runs.
            limit: 1 to 1000.
            cursor: where the page before ended.
            order: by the moment of creation.
            count_to: how far the runs of all pages are counted; None: not at all.

        Raises:
            UsageError: the cursor is no page's, or `limit` is not 1 to 1000.
        """

    def count(self, filter: RunFilter, at_most: int = 10_000) -> int:
        """How many runs a listing has; counting stops at `at_most`."""

    def batches(self, *, limit: int = 50, cursor: str | None = None) -> BatchPage:
        """One page of the batches.

        Raises:
            UsageError: as `page`.
        """

    def batch(self, id: str) -> BatchRow:
        """One batch. Raises NotThere."""

    def delete(self, run: str) -> None:
        """Remove a run whole, and the files that no other run uses.

        Raises:
            Conflict: it is running.
        """

    # evidence, keyed by (run, attempt, seq): what is kept stays, a second one is ignored
    def append_events(
        self, run: str, attempt: int, events: Sequence[tuple[int, JobEvent]]
    ) -> None: ...

    def events(
        self, run: str, *, attempt: int | None = None, after: int = -1
    ) -> Iterable[tuple[int, JobEvent]]:
        """The events of the latest attempt (or the one named) with a number over `after`."""

    def save_record(self, run: str, attempt: int, record: JobRecord) -> None:
        """Seal the attempt's job record; one that is sealed already stays."""

    def record(self, run: str) -> JobRecord | None:
        """The sealed job record of the latest attempt; None when it was never sealed."""

    def record_size(self, run: str) -> int:
        """About how many bytes of JSON the job record of the latest attempt is, without reading it.

        Of one that was never sealed: its events as they are kept.
        """

    def save_answers(self, run: str, attempt: int, answers: Sequence[HostAnswer]) -> None:
        """What the hosts answered to the rules, in the order asked; the first answers stay."""

    def answers(self, run: str) -> list[HostAnswer]: ...

    def save_steps(self, run: str, attempt: int, phase: str, answers: Sequence[HostAnswer]) -> None:
        """What the hosts answered to the steps of a phase, for whoever must understand it.

        A later call for the same phase replaces it.
        """

    def steps(self, run: str, phase: str) -> list[HostAnswer]: ...

    def save_host(
        self,
        run: str,
        attempt: int,
        facts: HostFacts,
        changed: Sequence[ChangedFile] | None = None,
    ) -> None:
        """What a host was made of; called again with the files that changed since setup."""

    def hosts(self, run: str) -> list[tuple[HostFacts, tuple[ChangedFile, ...] | None]]: ...

    # grades
    def add_grade(self, run: str, grade: Grade, *, cause: str, by: str | None = None) -> int:
        """Keep another grade; returns its number. Earlier ones stay as they are.

        A run that is done then reads, and is listed, under this grade.
        """

    def add_grades(self, grades: Mapping[str, Grade], *, cause: str, by: str | None = None) -> None:
        """As `add_grade` for many runs at once, by their ids: all of them or none."""

    def grades(self, run: str) -> list[StoredGrade]: ...

    def sealed(self, runs: Sequence[str]) -> list[Sealed]:
        """What these runs are graded again by, in the order asked; at most 500 at once."""

    # files, by content
    def put_file(self, content: bytes) -> str:
        """Keep a body for a run that is still to be planned; returns its SHA-256 in hex."""

    def file(self, digest: str) -> bytes:
        """The body with this SHA-256 in hex. Raises KeyError when there is none."""

    # lasting hosts
    def leases(
        self, owner: Owner, gone: Callable[[Owner], bool], *, seconds: float = LEASE_SECONDS
    ) -> LeaseBook:
        """The book of leases, as one process uses it.

        Args:
            owner: that process.
            gone: whether another one is known to live no more; its leases end at once.
            seconds: how long a lease holds without being renewed.
        """

    # what an API needs beside the runs

    def shelf(self) -> Shelf:
        """The scenarios that are kept here."""

    def access(self) -> AccessBook:
        """Who may do what."""

    def requests(self) -> RequestBook:
        """Starts that may be sent twice."""
