"""The book of leases in a database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection, Row, delete, select, update

from opsdrill.hosts.lease import Claim, Lease, Turn
from opsdrill.store import rows
from opsdrill.store.cursor import microseconds, moment
from opsdrill.store.database import Database, lock_alone
from opsdrill.store.lease_course import Entry, Gone, holder, place_of, split, turn_of, waiting
from opsdrill.store.store import Owner
from opsdrill.store.tables import LEASE_HOSTS, LEASES


class SqlLeases:
    """A `LeaseBook` in the store's database.

    Args:
        database: the store's.
        owner: this process.
        gone: whether another one is known to live no more.
        clock: the present moment, in UTC.
        seconds: how long a lease holds without being renewed.
    """

    def __init__(
        self,
        database: Database,
        owner: Owner,
        gone: Gone,
        clock: Callable[[], datetime],
        seconds: float,
    ) -> None:
        self._database = database
        self._owner = owner
        self._gone = gone
        self._clock = clock
        self._lasts = timedelta(seconds=seconds)

    def take(self, claim: Claim) -> Turn:
        with self._database.read() as connection:
            live, _ = split(_entries(connection), self._clock(), self._gone)
        mine = place_of(claim, live)
        if mine is not None and not (turn := turn_of(claim, mine, live)).held:
            return turn
        with self._database.write() as connection:
            lock_alone(connection, LEASES)
            now = self._clock()
            live, over = split(_entries(connection), now, self._gone)
            _delete(connection, [entry.lease.number for entry in over])
            mine = place_of(claim, live) or self._ask(connection, claim, now)
            turn = turn_of(claim, mine, live)
            if turn.held and not mine.held:
                change = {"held": True, "since": microseconds(now), "expires_at": self._end(now)}
                connection.execute(
                    update(LEASES).where(LEASES.c.number == mine.number).values(**change)
                )
        return turn

    def renew(self, numbers: Iterable[int]) -> set[int]:
        wanted = sorted(set(numbers))
        with self._database.write() as connection:
            found = connection.execute(
                update(LEASES)
                .where(LEASES.c.number.in_(wanted))
                .values(expires_at=self._end(self._clock()))
                .returning(LEASES.c.number)
            )
            return set(found.scalars())

    def release(self, number: int) -> None:
        with self._database.write() as connection:
            # The lease before its hosts, as everybody locks them, so that nobody waits in a circle.
            connection.execute(
                select(LEASES.c.number).where(LEASES.c.number == number).with_for_update()
            )
            _delete(connection, [number])

    def leases(self) -> list[Lease]:
        with self._database.read() as connection:
            live, _ = split(_entries(connection), self._clock(), self._gone)
        return [entry.lease for entry in live]

    def sweep(self) -> list[Lease]:
        with self._database.read() as connection:
            _, over = split(_entries(connection), self._clock(), self._gone)
        if not over:
            return []
        with self._database.write() as connection:
            lock_alone(connection, LEASES)
            _, over = split(_entries(connection), self._clock(), self._gone)
            _delete(connection, [entry.lease.number for entry in over])
        return [entry.lease for entry in over]

    def _ask(self, connection: Connection, claim: Claim, now: datetime) -> Lease:
        values = {
            "run": claim.run,
            "attempt": claim.attempt,
            "held": False,
            "since": microseconds(now),
            "expires_at": self._end(now),
            **rows.owned(self._owner),
        }
        statement = LEASES.insert().values(**values).returning(LEASES.c.number)
        number = int(connection.execute(statement).scalar_one())
        if claim.hosts:
            hosts = [
                {"lease": number, "key": key, "name": name} for key, name in claim.hosts.items()
            ]
            connection.execute(LEASE_HOSTS.insert(), hosts)
        return waiting(claim, number, now, now + self._lasts, self._owner).lease

    def _end(self, now: datetime) -> int:
        return microseconds(now + self._lasts)


def _entries(connection: Connection) -> list[Entry]:
    hosts: dict[int, dict[str, str]] = {}
    for row in connection.execute(select(LEASE_HOSTS).order_by(LEASE_HOSTS.c.key)):
        hosts.setdefault(row.lease, {})[row.key] = row.name
    found = connection.execute(select(LEASES).order_by(LEASES.c.number)).all()
    return [_entry(row, hosts.get(row.number, {})) for row in found]


def _entry(row: Row[*tuple[object, ...]], hosts: dict[str, str]) -> Entry:
    owner = rows.owner(row)
    assert owner is not None
    lease = Lease(
        number=row.number,
        run=row.run,
        attempt=row.attempt,
        hosts=hosts,
        held=row.held,
        since=moment(row.since),
        expires_at=moment(row.expires_at),
        holder=holder(owner),
    )
    return Entry(lease, owner)


def _delete(connection: Connection, numbers: Sequence[int]) -> None:
    if numbers:
        connection.execute(delete(LEASE_HOSTS).where(LEASE_HOSTS.c.lease.in_(numbers)))
        connection.execute(delete(LEASES).where(LEASES.c.number.in_(numbers)))
