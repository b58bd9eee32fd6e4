"""Keep what other tools recorded as runs of our own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from opsdrill.app import documents, scenarios
from opsdrill.app.origin import Origin, run_names
from opsdrill.app.secrets import NO_LAB, mask_for
from opsdrill.app.shelf import kept_here
from opsdrill.app.stores import opened_store
from opsdrill.app.transcripts import placing_for, recorded_jobs, strange_hosts
from opsdrill.app.wiring import Place
from opsdrill.errors import InvalidInput, StoreDamaged, UsageError
from opsdrill.evidence.mask import Mask
from opsdrill.evidence.masked_spec import masked_spec
from opsdrill.evidence.masking import masked
from opsdrill.evidence.transcripts.imported import Imported, Placing
from opsdrill.grading.engine import Grader
from opsdrill.model.fields import DNS_LABEL, HOSTS_LIMIT
from opsdrill.model.host import HostAnswer
from opsdrill.model.result import Result
from opsdrill.model.run import AgentChoice, RunSpec
from opsdrill.model.scenario import Host, Scenario
from opsdrill.patterns import BoundedSearcher, Searcher
from opsdrill.runner.tools import new_run_id
from opsdrill.scenarios.load import LoadedScenario, load_answers
from opsdrill.store.store import Store

ORIGIN = "origin"
"""The label that tells where an imported run came from, as a digest."""
WITHOUT = "imported"
"""The key of the scenario without rules under which a job is kept when nobody names another."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be imported, and what is said of it.

    Args:
        files: transcripts and job records.
        scenario: what they are graded by; None: they are kept without rules.
        host: the host of whatever names none.
        split_ssh: take `ssh HOST COMMAND` for a command of that host.
        answers: what the hosts answered, for the rules that ask hosts.
        again: keep once more what was kept before.
        name: what a file is called in labels, if not by its own name.
    """

    files: Sequence[Path]
    scenario: str | None = None
    host: str | None = None
    split_ssh: bool = False
    answers: Path | None = None
    again: bool = False
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """A file that could not be read, and why."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class Kept:
    """One job that is a run now."""

    file: str
    job: str
    format: str
    result: Result
    commands: int


@dataclass(frozen=True, slots=True)
class Known:
    """One job that is a run already: the same bytes, by the same scenario, read the same way.

    Args:
        other_rules: the scenario has other rules by now than when the run was kept.
    """

    file: str
    job: str
    format: str
    run: str
    other_rules: bool


def read(place: Place, order: Order) -> Iterator[tuple[str, Imported]]:
    """The jobs of all files, each with its file's name; nothing is kept.

    Raises:
        UsageError: a file is not there, or nobody says on which host the agent worked.
        InvalidInput: a file cannot be read.
    """
    loaded = _scenario(place, order)
    mask = mask_for(place, NO_LAB)
    for path in order.files:
        for imported in recorded_jobs(path, _placing(loaded, order), mask):
            yield str(path), imported


def keep(place: Place, order: Order) -> Iterator[Kept | Known | Refused]:
    """Import every file, one run for each job; a file that cannot be read hides none of the others.

    A run is kept whole or not at all; one that is kept is told, also when that is interrupted.

    Raises:
        UsageError: there is no such scenario, or it has no such host.
        InvalidInput: the scenario or the host answers are broken.
    """
    loaded = _scenario(place, order)
    with opened_store(place) as store, BoundedSearcher() as searcher:
        yield from keep_in(place, order, loaded, store=store, searcher=searcher)


def keep_in(
    place: Place,
    order: Order,
    loaded: LoadedScenario | None,
    *,
    store: Store,
    searcher: Searcher,
    batch: str | None = None,
) -> Iterator[Kept | Known | Refused]:
    """As `keep`, in a store that is open.

    Args:
        loaded: the scenario of the order.
        batch: what the new runs have in common; None: an id of their own.
    """
    placing = _placing(loaded, order)
    answers = load_answers(order.answers).answers if order.answers else ()
    mask = mask_for(place, NO_LAB)
    keeper = _Keeper(
        store, searcher, loaded, answers, mask, batch or new_run_id(), order.again, order.name
    )
    key = loaded.scenario.key if loaded else None
    for path in order.files:
        origin = Origin.of(path, key, placing, order.answers)
        try:
            for number, imported in enumerate(recorded_jobs(path, placing, mask)):
                yield from keeper.keep(imported, origin, number)
        except (UsageError, InvalidInput, StoreDamaged) as error:
            hint = f" ({error.hint})" if error.hint else ""
            yield Refused(str(path), f"{error.message}{hint}")


def _scenario(place: Place, order: Order) -> LoadedScenario | None:
    if order.scenario is None:
        return None
    return scenarios.one(place, order.scenario, kept_here(place) if place.has_store else ())


def _placing(loaded: LoadedScenario | None, order: Order) -> Placing:
    shape = loaded.scenario if loaded else None
    return placing_for(shape, order.host, split_ssh=order.split_ssh)


def _without_rules(imported: Imported) -> Scenario:
    hosts = dict.fromkeys(
        task.host for task in imported.record.tasks if re.fullmatch(DNS_LABEL, task.host)
    )
    return Scenario(
        key=WITHOUT,
        title="Imported without a scenario",
        ticket_title=imported.record.ticket.title,
        ticket_body=imported.record.ticket.body,
        hosts=tuple(Host(name=name) for name in list(hosts)[:HOSTS_LIMIT]),
    )


@dataclass(frozen=True, slots=True)
class _Keeper:
    """Makes runs of recorded jobs."""

    store: Store
    searcher: Searcher
    loaded: LoadedScenario | None
    answers: Sequence[HostAnswer]
    mask: Mask
    batch: str
    again: bool
    name: str | None = None

    def keep(self, imported: Imported, origin: Origin, number: int) -> Iterator[Kept | Known]:
        file, key = str(origin.path), origin.key(number)
        id, found = (new_run_id(), None) if self.again or key is None else self._named(key)
        if found is not None:
            other = self.loaded is not None and found.scenario_version != self.loaded.version
            yield Known(file, imported.name, imported.format, id, other)
            return
        kept = masked_spec(self.mask, self._spec(id, key, imported, origin.path))
        spec, answers = kept.spec, tuple(masked(kept.mask, answer) for answer in self.answers)
        record, shape, version = imported.record, spec.scenario, spec.scenario_version
        grader = Grader(shape, self.searcher, scenario_version=version)
        graded = grader.grade(record, answers)
        result = Result(
            run=spec.id,
            scenario=shape.key,
            agent=str(spec.agent),
            scenario_version=version,
            state="done",
            warnings=(*imported.warnings, *strange_hosts(record, shape), *kept.warnings),
        ).under(graded)
        calls = (call for task in record.tasks for call in task.tool_calls)
        commands = sum(call.kind == "shell" for call in calls)
        told = Kept(file, imported.name, imported.format, result, commands)
        try:
            self.store.add(spec, record, answers, result, graded)
        except KeyboardInterrupt:
            if self._is_kept(id):
                yield told
            raise
        yield told

    def _named(self, key: str) -> tuple[str, RunSpec | None]:
        """The id of the run of an origin, and the run where it is kept."""
        for id in run_names(key):
            try:
                found = self.store.get(id).spec
            except KeyError:
                return id, None
            if found.labels.get(ORIGIN) == key:
                return id, found
        return new_run_id(), None

    def _is_kept(self, id: str) -> bool:
        return id in self.store.find(id)

    def _spec(self, id: str, key: str | None, imported: Imported, path: Path) -> RunSpec:
        shape = self.loaded.scenario if self.loaded else _without_rules(imported)
        return RunSpec(
            id=id,
            batch=self.batch,
            scenario=shape,
            scenario_version=self.loaded.version if self.loaded else shape.version(),
            agent=AgentChoice(adapter=imported.format, argument=imported.agent),
            lab=NO_LAB,
            labels={"file": self.name or path.name, "job": imported.name}
            | ({ORIGIN: key} if key else {}),
            created_at=datetime.now(UTC),
        )


def document(
    kept: Sequence[Kept], known: Sequence[Known], refused: Sequence[Refused], *, lines: bool
) -> bytes:
    """What was imported, for programs."""
    rows: list[dict[str, object]] = [
        {
            "file": one.file,
            "job": one.job,
            "format": one.format,
            "run": one.result.run,
            "verdict": one.result.verdict,
            "reason": one.result.reason,
            "commands": one.commands,
            "warnings": list(one.result.warnings),
        }
        for one in kept
    ]
    if lines:
        return documents.lines(rows)
    problems = [{"file": one.file, "reason": one.reason} for one in refused]
    before = [
        {"file": one.file, "job": one.job, "format": one.format, "run": one.run} for one in known
    ]
    return documents.document("imports", "runs", rows, known=before, refused=problems)
