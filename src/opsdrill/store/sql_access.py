"""Tokens and sessions in the database."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, or_, select, update

from opsdrill.errors import Conflict, NotThere
from opsdrill.store.access import Session, Token
from opsdrill.store.cursor import microseconds, moment
from opsdrill.store.database import Database, insert_or_ignore, lock_alone
from opsdrill.store.rows import maybe_microseconds, maybe_moment
from opsdrill.store.tables import SESSIONS, TOKENS


class SqlAccess:
    """An `AccessBook` in the store's database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add_token(self, token: Token, hash: str) -> None:
        with self._database.write() as connection:
            _insert(connection, token, hash)

    def add_first(self, token: Token, hash: str) -> bool:
        with self._database.write() as connection:
            lock_alone(connection, TOKENS)
            if connection.execute(select(TOKENS.c.id).limit(1)).first():
                return False
            _insert(connection, token, hash)
            return True

    def any_token(self) -> bool:
        with self._database.ask() as connection:
            return connection.execute(select(TOKENS.c.id).limit(1)).first() is not None

    def token_by_hash(self, hash: str) -> Token | None:
        with self._database.ask() as connection:
            row = connection.execute(select(TOKENS).where(TOKENS.c.hash == hash)).first()
        return None if row is None else _token(row)

    def tokens(self) -> list[Token]:
        with self._database.ask() as connection:
            found = connection.execute(select(TOKENS).order_by(TOKENS.c.created_at, TOKENS.c.id))
            return [_token(row) for row in found]

    def token(self, id: str) -> Token:
        with self._database.ask() as connection:
            return _found(connection, id)

    def revoke(self, id: str, at: datetime) -> Token:
        with self._database.write() as connection:
            connection.execute(
                update(TOKENS)
                .where(TOKENS.c.id == id, TOKENS.c.revoked_at.is_(None))
                .values(revoked_at=microseconds(at))
            )
            connection.execute(delete(SESSIONS).where(SESSIONS.c.token == id))
            return _found(connection, id)

    def used(self, id: str, at: datetime) -> None:
        now = microseconds(at)
        before = or_(TOKENS.c.last_used_at.is_(None), TOKENS.c.last_used_at < now)
        with self._database.write() as connection:
            connection.execute(
                update(TOKENS).where(TOKENS.c.id == id, before).values(last_used_at=now)
            )

    def add_session(self, session: Session, hash: str) -> None:
        values = {
            "hash": hash,
            "id": session.id,
            "token": session.token,
            "csrf": session.csrf,
            "created_at": microseconds(session.created_at),
            "expires_at": microseconds(session.expires_at),
        }
        with self._database.write() as connection:
            _found(connection, session.token)
            kept = connection.execute(
                insert_or_ignore(connection, SESSIONS).values(**values).returning(SESSIONS.c.hash)
            )
            if kept.first() is None:
                raise Conflict("the session is there already")

    def session_by_hash(self, hash: str, now: datetime) -> Session | None:
        at = microseconds(now)
        with self._database.ask() as connection:
            row = connection.execute(
                select(SESSIONS)
                .join(TOKENS, TOKENS.c.id == SESSIONS.c.token)
                .where(
                    SESSIONS.c.hash == hash,
                    SESSIONS.c.expires_at > at,
                    TOKENS.c.revoked_at.is_(None),
                    or_(TOKENS.c.expires_at.is_(None), TOKENS.c.expires_at > at),
                )
            ).first()
        return None if row is None else _session(row)

    def end_session(self, hash: str) -> None:
        with self._database.write() as connection:
            connection.execute(delete(SESSIONS).where(SESSIONS.c.hash == hash))

    def end_old_sessions(self, now: datetime) -> int:
        with self._database.write() as connection:
            over = delete(SESSIONS).where(SESSIONS.c.expires_at <= microseconds(now))
            return len(connection.execute(over.returning(SESSIONS.c.hash)).all())


def _insert(connection: Connection, token: Token, hash: str) -> None:
    values = {
        "id": token.id,
        "hash": hash,
        "name": token.name,
        "role": token.role,
        "created_at": microseconds(token.created_at),
        "expires_at": maybe_microseconds(token.expires_at),
        "revoked_at": maybe_microseconds(token.revoked_at),
        "last_used_at": maybe_microseconds(token.last_used_at),
        "by": token.by,
    }
    statement = insert_or_ignore(connection, TOKENS).values(**values)
    if connection.execute(statement.returning(TOKENS.c.id)).first() is None:
        raise Conflict(f"token {token.id!r} is there already")


def _found(connection: Connection, id: str) -> Token:
    row = connection.execute(select(TOKENS).where(TOKENS.c.id == id)).first()
    if row is None:
        raise NotThere("token", id)
    return _token(row)


def _token(row: Row[*tuple[Any, ...]]) -> Token:
    return Token(
        id=row.id,
        name=row.name,
        role=row.role,
        created_at=moment(row.created_at),
        expires_at=maybe_moment(row.expires_at),
        revoked_at=maybe_moment(row.revoked_at),
        last_used_at=maybe_moment(row.last_used_at),
        by=row.by,
    )


def _session(row: Row[*tuple[Any, ...]]) -> Session:
    return Session(
        id=row.id,
        token=row.token,
        csrf=row.csrf,
        created_at=moment(row.created_at),
        expires_at=moment(row.expires_at),
    )
