"""The one place that knows which database this is: connections, transactions, its errors."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, Table, create_engine, event, make_url
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.sql.dml import Insert

from opsdrill.errors import StoreError

BUSY_MILLISECONDS = 30_000
_WRITES = "opsdrill_writes"


class Database:
    """Connections to one database; safe to use from several threads and processes.

    Args:
        url: an SQLAlchemy URL, e.g. `sqlite:////data/store.db`.
    """

    def __init__(self, url: str) -> None:
        self.url = make_url(url)
        self.where = self.url.database or self.url.render_as_string()
        self.engine: Engine = create_engine(self.url)
        if self.engine.dialect.name == "sqlite":
            event.listen(self.engine, "connect", _set_up_sqlite)
            event.listen(self.engine, "begin", _begin_sqlite)
        self._writer = self.engine.execution_options(**{_WRITES: True})

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that only reads: one state of the store from its first query on.

        Raises:
            StoreError: the database cannot be used; says why.
        """
        with self._explained(), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that writes; on SQLite it has the only write lock from its beginning.

        Raises:
            StoreError: nothing was written; says why.
        """
        with self._explained(), self._writer.begin() as connection:
            yield connection

    def close(self) -> None:
        """Close all connections; repeatable."""
        self.engine.dispose()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise _explain(error, self.where) from error


def insert_or_ignore(connection: Connection, table: Table) -> Insert:
    """An INSERT that leaves a row alone whose key is there already."""
    return _insert(connection, table).on_conflict_do_nothing()


def upsert(
    connection: Connection, table: Table, key: Sequence[str], update: Sequence[str]
) -> Insert:
    """An INSERT that sets the columns `update` where the unique `key` is there already."""
    statement = _insert(connection, table)
    return statement.on_conflict_do_update(
        index_elements=list(key), set_={name: statement.excluded[name] for name in update}
    )


def lock_alone(connection: Connection, table: Table) -> None:
    """Nobody else changes `table` until this writing transaction ends, and reads it only stale."""
    # On SQLite a transaction that writes is alone from its beginning.
    if connection.dialect.name != "sqlite":
        connection.exec_driver_sql(f"LOCK TABLE {table.name} IN EXCLUSIVE MODE")


def _insert(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    if connection.dialect.name == "sqlite":
        return sqlite.insert(table)
    return postgresql.insert(table)


def _set_up_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    # Python's driver would begin transactions by its own rules; `_begin_sqlite` does it by ours.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout={BUSY_MILLISECONDS}")
    _use_wal(cursor)
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _use_wal(cursor: sqlite3.Cursor) -> None:
    """Switch the database to a write-ahead log, which it stays with for good."""
    deadline = time.monotonic() + BUSY_MILLISECONDS / 1000
    while cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return  # a file system that cannot do it says so by its answer, and works without
        except sqlite3.OperationalError as error:
            # For this one statement SQLite does not wait for others that open the store now.
            if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > deadline:
                raise
            time.sleep(0.005)


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and writes later fails at once when another one wrote between.
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


_REASONS = {
    "SQLITE_FULL": ("the disk is full", "make room, then go on"),
    "SQLITE_READONLY": ("it is read-only here", "choose a folder that you can write with --home"),
    "SQLITE_CANTOPEN": ("it cannot be opened", "does the folder exist, and may you write in it?"),
    "SQLITE_PERM": ("it may not be opened", "choose a folder that you can write with --home"),
    "SQLITE_BUSY": (
        f"another process kept it locked for {BUSY_MILLISECONDS // 1000} s",
        "end that process, or wait for it",
    ),
    "SQLITE_CORRUPT": ("it is damaged", "restore it from a backup, or choose another --home"),
    "SQLITE_NOTADB": ("it is no database", "move that file away, or choose another --home"),
    "SQLITE_IOERR": ("reading or writing the disk failed", "is the disk full or broken?"),
}


def _explain(error: Exception, where: str) -> StoreError:
    cause: Any = error.orig if isinstance(error, DBAPIError) else error
    name = str(getattr(cause, "sqlite_errorname", ""))
    for prefix, (reason, hint) in _REASONS.items():
        if name.startswith(prefix):
            return StoreError(f"the store {where} cannot be used: {reason}", hint=hint)
    return StoreError(f"the store {where} cannot be used: {cause}")
