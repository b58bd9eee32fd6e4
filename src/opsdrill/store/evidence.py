"""Evidence in the database: events, job records, host answers, hosts, by run and attempt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from sqlalchemy import Connection

from opsdrill.errors import StoreDamaged
from opsdrill.model.event import JOB_EVENT, JobEvent
from opsdrill.model.host import ChangedFile, HostAnswer, HostFacts
from opsdrill.model.job import JobRecord
from opsdrill.model.outputs import apart, together
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
        bodies = self._record_bodies(record)
        with self._database.write() as connection:
            number, _ = queries.run_number(connection, run, keep=True)
            self._seal(connection, number, attempt, bodies)

    def record(self, run: str) -> JobRecord | None:
        with self._database.read() as connection:
            number, attempt = queries.run_number(connection, run)
            body = queries.document(connection, number, attempt, "record")
            given = queries.document(connection, number, attempt, "outputs")
        if body is None:
            return None
        what = f"the job record of run {run}"
        record = self._bodies.read(documents.RECORD, body, what)
        if given is None:
            return record
        try:
            return together(record, self._bodies.read(documents.OUTPUTS, given, what))
        except ValueError as error:
            raise StoreDamaged(f"{what} cannot be read back") from error

    def record_size(self, run: str) -> int:
        with self._database.read() as connection:
            number, attempt = queries.run_number(connection, run)
            body = queries.document(connection, number, attempt, "record")
            if body is None:
                return queries.events_size(connection, number, attempt)
            given = queries.document(connection, number, attempt, "outputs")
            return sum(self._bodies.size(connection, one) for one in (body, given) if one)

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

    def _record_bodies(self, record: JobRecord) -> dict[str, Prepared]:
        """The documents that a job record becomes."""
        graded, outputs = apart(record)
        bodies = {"record": self._bodies.prepare(documents.RECORD, graded)}
        if outputs:
            bodies["outputs"] = self._bodies.prepare(documents.OUTPUTS, outputs)
        return bodies

    def _seal(
        self, connection: Connection, run: int, attempt: int, bodies: Mapping[str, Prepared]
    ) -> None:
        """Keep a job record whole, unless the attempt has one."""
        if queries.document(connection, run, attempt, "record") is None:
            self._bodies.admit(connection, run, bodies.values())
            for kind, body in bodies.items():
                queries.put_document(connection, run, attempt, kind, body.body)

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
