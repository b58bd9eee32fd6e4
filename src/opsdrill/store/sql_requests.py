"""Idempotency keys in the database."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import and_, delete, or_, select, update

from opsdrill.store.cursor import microseconds
from opsdrill.store.database import Database, insert_or_ignore
from opsdrill.store.requests import KEPT, LOST, Claimed, check_digest, check_key
from opsdrill.store.tables import REQUESTS


class SqlRequests:
    """A `RequestBook` in the store's database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim(self, who: str, key: str, digest: str, now: datetime) -> Claimed:
        check_key(key)
        over = or_(
            REQUESTS.c.claimed_at <= microseconds(now - KEPT),
            and_(
                REQUESTS.c.claimed_at <= microseconds(now - LOST),
                REQUESTS.c.answer.is_(None),
            ),
        )
        values = {"who": who, "key": key, "digest": digest, "claimed_at": microseconds(now)}
        with self._database.write() as connection:
            connection.execute(delete(REQUESTS).where(over))
            statement = insert_or_ignore(connection, REQUESTS).values(**values)
            if connection.execute(statement.returning(REQUESTS.c.key)).first():
                return Claimed("new")
            row = connection.execute(
                select(REQUESTS.c.digest, REQUESTS.c.answer).where(
                    REQUESTS.c.who == who, REQUESTS.c.key == key
                )
            ).first()
        if row is None:  # given up since
            return Claimed("under way")
        check_digest(key, row.digest, digest)
        return Claimed("under way" if row.answer is None else "answered", row.answer)

    def answer(self, who: str, key: str, body: bytes) -> None:
        with self._database.write() as connection:
            connection.execute(
                update(REQUESTS)
                .where(REQUESTS.c.who == who, REQUESTS.c.key == key)
                .values(answer=body)
            )

    def release(self, who: str, key: str) -> None:
        with self._database.write() as connection:
            connection.execute(
                delete(REQUESTS).where(
                    REQUESTS.c.who == who, REQUESTS.c.key == key, REQUESTS.c.answer.is_(None)
                )
            )
