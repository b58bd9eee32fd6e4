"""Grade kept runs again: some at a time here, or very many in several processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing.util import Finalize

from opsdrill.errors import OpsDrillError, StoreDamaged
from opsdrill.evidence.mask import Mask
from opsdrill.evidence.masked_spec import masked_scenario
from opsdrill.grading.engine import Grader
from opsdrill.grading.flips import Flip, flips
from opsdrill.model.planned import Planned, read_planned
from opsdrill.model.result import Grade
from opsdrill.model.run import LabChoice, RunSpec
from opsdrill.model.scenario import Scenario
from opsdrill.model.sealed import read_record
from opsdrill.model.standing import Standing, read_standing
from opsdrill.patterns import BoundedSearcher, Searcher
from opsdrill.runner.tools import only_tokens
from opsdrill.store.documents import ANSWERS, GRADE, SPEC, dump, load
from opsdrill.store.store import Sealed, Store

AT_ONCE = 100
"""Runs that are read, graded and written together."""
ALONE = 500
"""Runs up to which further processes would cost more than they save."""
_AHEAD = 3
"""Chunks that wait for each process, so that none waits for work."""
_GRADERS = 64
"""Scenario versions whose rules are kept prepared."""


@dataclass(frozen=True, slots=True)
class Edited:
    """Rules that take the place of the runs' own; `key` is the scenario whose runs they are for."""

    scenario: Scenario
    version: str


@dataclass(frozen=True, slots=True)
class Manner:
    """How runs are graded again. Goes to other processes, so all in it can be pickled.

    Args:
        edited: the rules; None: each run's own.
        also: keys of scenarios whose runs the edited rules may be used for besides their own.
        preview: keep nothing.
        by: who wants it, kept with every new grade.
        mask: what was masked in runs of a lab, and so must be in edited rules.
    """

    edited: Edited | None = None
    also: frozenset[str] = frozenset()
    preview: bool = False
    by: str | None = None
    mask: Callable[[LabChoice], Mask] = only_tokens


@dataclass(slots=True)
class Chunk:
    """What became of some runs.

    Args:
        seen: how many there were.
        graded: how many were graded.
        changed: how many of them got another grade than their latest.
        flips: what is judged otherwise.
        notes: what is to be said, with the run it is said of.
    """

    seen: int = 0
    graded: int = 0
    changed: int = 0
    flips: list[Flip] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)


class Regrader:
    """Grades runs of one store again.

    Args:
        store: where they are kept.
        searcher: the regex engine.
        manner: how.
    """

    def __init__(self, store: Store, searcher: Searcher, manner: Manner) -> None:
        self._store = store
        self._searcher = searcher
        self._manner = manner
        self._graders: dict[tuple[str, bytes], Grader] = {}
        self._masks: dict[bytes, Mask] = {}
        self._unmasked: tuple[str, ...] = ()

    def chunk(self, runs: Sequence[str]) -> Chunk:
        """Grade some runs and keep the grades that differ from the latest; at most `AT_ONCE`.

        One that is deleted meanwhile, or cannot be read back, is left out.
        """
        try:
            return self._chunk(runs)
        except (KeyError, StoreDamaged):
            found = Chunk(seen=len(runs))
            for run in runs:
                try:
                    _add(found, self._chunk([run]))
                except KeyError:
                    found.notes.append(("deleted meanwhile, left out", run))
                except StoreDamaged as error:
                    found.notes.append((f"damaged, left out: {error.what}", run))
            found.seen = len(runs)
            return found

    def _chunk(self, runs: Sequence[str]) -> Chunk:
        found = Chunk(seen=len(runs))
        changed: dict[str, Grade] = {}
        for sealed in self._store.sealed(runs):
            why = self._left_out(sealed)
            if why is not None:
                found.notes.append((why, sealed.run))
                continue
            planned = _planned(sealed)
            unknown = self._unknown_secrets(sealed, planned)
            if unknown is not None:
                found.notes.append((unknown, sealed.run))
                continue
            grade = self._grade(sealed, planned)
            before = self._before(sealed)
            found.graded += 1
            found.flips += flips(sealed.run, sealed.scenario, before, grade)
            if before is not None and before.grading_version != grade.grading_version:
                versions = f"{before.grading_version} and {grade.grading_version}"
                found.notes.append((f"grades of different versions ({versions})", sealed.run))
            if before is None or _differ(before, sealed.latest, grade):
                changed[sealed.run] = grade
        found.changed = len(changed)
        found.notes += [(text, runs[0]) for text in self._unmasked]
        self._unmasked = ()
        if changed and not self._manner.preview:
            self._store.add_grades(changed, cause="regrade", by=self._manner.by)
        return found

    def _left_out(self, sealed: Sealed) -> str | None:
        if sealed.state != "done" or sealed.record is None:
            return f"no sealed job record ({sealed.state}), left out"
        edited = self._manner.edited
        if edited is None or sealed.scenario in {edited.scenario.key, *self._manner.also}:
            return None
        return f"of {sealed.scenario}, not of {edited.scenario.key}, left out"

    def _unknown_secrets(self, sealed: Sealed, planned: Planned) -> str | None:
        """Why edited rules cannot be masked as the run was, whose rules held secrets too."""
        masked = set(planned.masked) if self._manner.edited else set()
        unknown = masked and masked - self._mask(sealed, bytes(planned.lab)).known
        if not unknown:
            return None
        names = ", ".join(sorted(unknown))
        return f"it holds secrets that cannot be had here ({names}), left out"

    def _grade(self, sealed: Sealed, planned: Planned) -> Grade:
        try:
            record = read_record(sealed.record or b"")
        except ValueError as error:
            raise _damaged(sealed.run, "evidence") from error
        what = f"the evidence of run {sealed.run}"
        answers = load(ANSWERS, sealed.answers, what) if sealed.answers else ()
        return self._grader(sealed, planned).grade(record, answers)

    def _before(self, sealed: Sealed) -> Standing | None:
        try:
            return read_standing(sealed.latest) if sealed.latest is not None else None
        except ValueError as error:
            raise _damaged(sealed.run, "latest grade") from error

    def _grader(self, sealed: Sealed, planned: Planned) -> Grader:
        """The grader for a run. A version is the digest of the rules: one serves all its runs
        that have the same secrets masked in them."""
        edited = self._manner.edited
        version = edited.version if edited else planned.scenario_version
        key = (
            version,
            bytes(planned.lab if edited else planned.scenario if planned.masked else b""),
        )
        known = self._graders.get(key)
        if known is None:
            scenario = _spec(sealed).scenario
            if edited is not None:
                # As the run would have kept them, for they meet what that run kept.
                scenario, _ = masked_scenario(self._mask(sealed, key[1]), edited.scenario)
            if len(self._graders) >= _GRADERS:
                self._graders.clear()
            known = Grader(scenario, self._searcher, scenario_version=version)
            self._graders[key] = known
        return known

    def _mask(self, sealed: Sealed, lab: bytes) -> Mask:
        """What is masked in runs of a lab; its secrets are looked up once."""
        if lab not in self._masks:
            self._masks[lab] = mask = self._manner.mask(_spec(sealed).lab)
            self._unmasked = tuple(dict.fromkeys((*self._unmasked, *mask.warnings)))
        return self._masks[lab]


def regrade_here(store: Store, runs: Sequence[str], manner: Manner) -> Generator[Chunk, None, None]:
    """Grade runs again in this process, chunk by chunk in their order."""
    with BoundedSearcher() as searcher:
        regrader = Regrader(store, searcher, manner)
        for some in _chunks(runs):
            yield regrader.chunk(some)


def regrade_in_processes(
    opener: Callable[[], Store], runs: Sequence[str], manner: Manner
) -> Generator[Chunk, None, None]:
    """The same on all processors, for stores that several processes can use at once.

    Args:
        opener: opens the store in another process; it must be picklable.
        runs: their ids.
        manner: how.

    Raises:
        OpsDrillError: a process was killed; what it had kept stays.
    """
    # A fork would take over the database's connection and threads.
    context = multiprocessing.get_context("spawn")
    workers = len(os.sched_getaffinity(0))
    pool = ProcessPoolExecutor(
        workers, mp_context=context, initializer=_start, initargs=(opener, manner)
    )
    try:
        chunks = _chunks(runs)
        waiting = deque(pool.submit(_work, some) for some in islice(chunks, workers * _AHEAD))
        while waiting:
            done: Future[Chunk] = waiting.popleft()
            yield done.result()
            waiting.extend(pool.submit(_work, some) for some in islice(chunks, 1))
    except BrokenProcessPool as error:
        raise OpsDrillError(
            "a process that graded runs was killed",
            hint="was memory short? give the command again to go on",
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _chunks(runs: Sequence[str]) -> Iterator[Sequence[str]]:
    return (runs[start : start + AT_ONCE] for start in range(0, len(runs), AT_ONCE))


_at_work: list[Regrader] = []


def _start(opener: Callable[[], Store], manner: Manner) -> None:
    """Set a process up. Whoever stops the command ends it; the terminal's key is not for it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    store, searcher = opener(), BoundedSearcher()
    Finalize(None, searcher.close, exitpriority=10)
    Finalize(None, store.close, exitpriority=5)
    _at_work.append(Regrader(store, searcher, manner))


def _work(runs: Sequence[str]) -> Chunk:
    return _at_work[0].chunk(runs)


def _spec(sealed: Sealed) -> RunSpec:
    return load(SPEC, sealed.spec, f"the spec of run {sealed.run}")


def _planned(sealed: Sealed) -> Planned:
    try:
        return read_planned(sealed.spec)
    except (ValueError, RecursionError) as error:
        raise _damaged(sealed.run, "spec") from error


def _differ(before: Standing, latest: bytes | None, grade: Grade) -> bool:
    """The same grade is the same bytes: it is kept once."""
    return before.scenario_version != grade.scenario_version or dump(GRADE, grade) != latest


def _add(total: Chunk, part: Chunk) -> None:
    total.graded += part.graded
    total.changed += part.changed
    total.flips += part.flips
    total.notes += part.notes


def _damaged(run: str, what: str) -> StoreDamaged:
    return StoreDamaged(f"the {what} of run {run} cannot be read back")
