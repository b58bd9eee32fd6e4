"""Evidence in the database: events, job records, host answers, hosts, by run and attempt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from opsdrill.model.event import JOB_EVENT, JobEvent
from opsdrill.model.host import ChangedFile, HostAnswer, HostFacts
from opsdrill.model.job import JobRecord
from opsdrill.store import documents, queries
from opsdrill.store.bodies import Bodies, Prepared
from opsdrill.store.database import Database

EVENTS_AT_ONCE = 500
LARGEST = 2**31 - 1
"""The largest attempt or event number that is looked for."""


class SqlEvidence:
    """The part of `SqlStore` that keeps what an attempt left behind."""

    def __init__(self, database: Database, bodies: Bodies) -> None:
        self._database = database
        self._bodies = bodies

    def append_events(self, run: str, attempt: int, events: Sequence[tuple[int, JobEvent]]) -> None:
        bodies = [(seq, self._bodies.prepare(JOB_EVENT, event)) for seq, event in events]
        with self._database.write() as connection:
            number, _ = queries.run_number(connection, run, keep=True)
            if bodies:
                self._bodies.admit(connection, number, [body for _, body in bodies])
                rows = [(seq, body.body) for seq, body in bodies]
                queries.put_events(connection, number, attempt, rows)

    def events(
        self, run: str, *, attempt: int | None = None, after: int = -1
    ) -> Iterable[tuple[int, JobEvent]]:
        with self._database.read() as connection:
            number, latest = queries.run_number(connection, run)
        wanted = latest if attempt is None else attempt
        return self._events(run, number, min(wanted, LARGEST), min(after, LARGEST))

    def _events(
        self, run: str, number: int, attempt: int, after: int
    ) -> Iterator[tuple[int, JobEvent]]:
        # Page by page, so that neither memory nor a transaction grows with the job.
        while True:
            with self._database.read() as connection:
                rows = queries.events(connection, number, attempt, after, EVENTS_AT_ONCE)
            for seq, body in rows:
                yield seq, self._bodies.read(JOB_EVENT, body, f"event {seq} of run {run}")
                after = seq
            if len(rows) < EVENTS_AT_ONCE:
                return

    def save_record(self, run: str, attempt: int, record: JobRecord) -> None:
        self._save(run, attempt, "record", self._bodies.prepare(documents.RECORD, record))

    def record(self, run: str) -> JobRecord | None:
        with self._database.read() as connection:
            number, attempt = queries.run_number(connection, run)
            body = queries.document(connection, number, attempt, "record")
        if body is None:
            return None
        return self._bodies.read(documents.RECORD, body, f"the job record of run {run}")

    def save_answers(self, run: str, attempt: int, answers: Sequence[HostAnswer]) -> None:
        body = self._bodies.prepare(documents.ANSWERS, tuple(answers))
        self._save(run, attempt, "answers", body)

    def answers(self, run: str) -> list[HostAnswer]:
        return self._answers(run, "answers", "")

    def save_steps(self, run: str, attempt: int, phase: str, answers: Sequence[HostAnswer]) -> None:
        body = self._bodies.prepare(documents.ANSWERS, tuple(answers))
        self._save(run, attempt, "steps", body, name=phase, replace=True)

    def steps(self, run: str, phase: str) -> list[HostAnswer]:
        return self._answers(run, "steps", phase)

    def save_host(
        self,
        run: str,
        attempt: int,
        facts: HostFacts,
        changed: Sequence[ChangedFile] | None = None,
    ) -> None:
        body = self._bodies.prepare(documents.FACTS, facts)
        self._save(run, attempt, "host", body, name=facts.name, replace=True)
        if changed is not None:
            body = self._bodies.prepare(documents.CHANGED, tuple(changed))
            self._save(run, attempt, "changed", body, name=facts.name, replace=True)

    def hosts(self, run: str) -> list[tuple[HostFacts, tuple[ChangedFile, ...] | None]]:
        with self._database.read() as connection:
            number, attempt = queries.run_number(connection, run)
            hosts = queries.documents(connection, number, attempt, "host")
            changes = dict(queries.documents(connection, number, attempt, "changed"))
        found: list[tuple[HostFacts, tuple[ChangedFile, ...] | None]] = []
        for name, body in hosts:
            facts = self._bodies.read(documents.FACTS, body, f"host {name} of run {run}")
            changed = None
            if name in changes:
                what = f"the changed files of host {name} of run {run}"
                changed = self._bodies.read(documents.CHANGED, changes[name], what)
            found.append((facts, changed))
        return found

    def _save(
        self,
        run: str,
        attempt: int,
        kind: str,
        body: Prepared,
        *,
        name: str = "",
        replace: bool = False,
    ) -> None:
        with self._database.write() as connection:
            number, _ = queries.run_number(connection, run, keep=True)
            self._bodies.admit(connection, number, [body])
            queries.put_document(
                connection, number, attempt, kind, body.body, name=name, replace=replace
            )

    def _answers(self, run: str, kind: str, name: str) -> list[HostAnswer]:
        with self._database.read() as connection:
            number, attempt = queries.run_number(connection, run)
            body = queries.document(connection, number, attempt, kind, name)
        if body is None:
            return []
        found = self._bodies.read(documents.ANSWERS, body, f"the {kind} of run {run}")
        return list(found)
