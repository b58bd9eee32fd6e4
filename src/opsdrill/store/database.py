"""The one place that knows which database this is: connections, transactions, its errors."""

from __future__ import annotations

import select as sockets
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    URL,
    Column,
    ColumnElement,
    Connection,
    Dialect,
    Engine,
    Integer,
    Table,
    create_engine,
    event,
    func,
    literal,
    make_url,
    select,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import ArgumentError, InvalidatePoolError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from opsdrill.errors import UsageError
from opsdrill.store.refusals import WAIT_SECONDS, explain

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql

BUSY_MILLISECONDS = WAIT_SECONDS * 1000
CONNECT_SECONDS = 10
POOL, OVERFLOW = 10, 20
"""Connections to a server that one process keeps, and how many more it opens for a while."""
REST_SECONDS = 5.0
"""How long a connection may rest until it is tried before it is used."""
_WRITES = "opsdrill_writes"
_RESTS = "opsdrill_rests"
_SETTINGS = {
    "lock_timeout": f"{WAIT_SECONDS}s",
    # Every query here walks an index, in its order, and stops early: with or without statistics,
    # nothing else is ever the quicker way.
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_sort": "off",
    # Rows of one index lie all over a table, in memory mostly; no walk is worth a second process.
    "random_page_cost": "1",
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
}
"""What each connection to PostgreSQL is told."""
_UPGRADES = 0x6F70_7364
"""The number of the lock that whoever brings a store up to date has on the server."""


class Database:
    """Connections to one database; safe to use from several threads and processes.

    Args:
        url: an SQLAlchemy URL, e.g. `sqlite:////data/store.db` or `postgresql://me@server/drills`.

    Raises:
        UsageError: it is no URL of a database that a store can be in.
    """

    def __init__(self, url: str) -> None:
        self.url = read_url(url)
        self.where = _where(self.url)
        self.engine: Engine = _engine(self.url)
        self._reader = self._asker = self.engine
        self._writer = self.engine.execution_options(**{_WRITES: True})
        if self.is_server:
            # One state of the store for all queries of a transaction, as SQLite has it.
            self._reader = self.engine.execution_options(isolation_level="REPEATABLE READ")
            self._writer = self.engine.execution_options(isolation_level="READ COMMITTED")
            self._asker = self.engine.execution_options(isolation_level="AUTOCOMMIT")

    @property
    def is_server(self) -> bool:
        """Whether it is on a server, and no file."""
        return self.engine.dialect.name != "sqlite"

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that only reads: one state of the store from its first query on.

        Raises:
            StoreError: the database cannot be used; says why.
        """
        with self._explained(), self._reader.begin() as connection:
            yield connection

    @contextmanager
    def ask(self) -> Iterator[Connection]:
        """Queries that need not see one state of the store: no transaction is begun on a server.

        Raises:
            StoreError: as `read`.
        """
        with self._explained(), self._asker.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that writes; on SQLite it has the only write lock from its beginning.

        On PostgreSQL several write at once; each query sees what is committed by then.

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
            raise explain(error, self.where) from error


def read_url(text: str) -> URL:
    """A database's URL; PostgreSQL is spoken to by psycopg whether or not the URL says so.

    Raises:
        UsageError: this is no URL, or one of another kind of database. It never shows the URL.
    """
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise UsageError(
            "the URL of the database cannot be read",
            hint="write it as postgresql://USER:PASSWORD@SERVER/DATABASE",
        ) from None
    if url.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername != "sqlite":
        raise UsageError(
            f"a store cannot be in a database of the kind {url.drivername!r}",
            hint="write its URL as postgresql://USER:PASSWORD@SERVER/DATABASE",
        )
    return url


def insert(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """An INSERT that can say what happens where its key is there already."""
    if connection.dialect.name == "sqlite":
        return sqlite.insert(table)
    # Imported by name at run time: every start would take longer for it.
    made: postgresql.Insert = import_module("sqlalchemy.dialects.postgresql").insert(table)
    return made


def insert_or_ignore(
    connection: Connection, table: Table, key: Sequence[str] | None = None
) -> sqlite.Insert | postgresql.Insert:
    """An INSERT that leaves a row alone whose unique `key`, by default any, is there already."""
    return insert(connection, table).on_conflict_do_nothing(index_elements=key)


def upsert(
    connection: Connection, table: Table, key: Sequence[str], update: Sequence[str]
) -> sqlite.Insert | postgresql.Insert:
    """An INSERT that sets the columns `update` where the unique `key` is there already."""
    statement = insert(connection, table)
    return statement.on_conflict_do_update(
        index_elements=list(key), set_={name: statement.excluded[name] for name in update}
    )


def contains(connection: Connection, column: Column[str], text: str) -> ColumnElement[bool]:
    """Whether a text stands in a column, as it is."""
    find = func.instr if connection.dialect.name == "sqlite" else func.strpos
    place = find(column, literal(text, column.type), type_=Integer)
    return place > 0


def lock_alone(connection: Connection, table: Table) -> None:
    """Nobody else changes `table` until this writing transaction ends, and reads it only stale."""
    # On SQLite a transaction that writes is alone from its beginning.
    if connection.dialect.name != "sqlite":
        connection.exec_driver_sql(f"LOCK TABLE {table.name} IN EXCLUSIVE MODE")


def lock_upgrade(connection: Connection) -> None:
    """Nobody else makes the store, or brings it up to date, until this transaction ends."""
    if connection.dialect.name != "sqlite":
        connection.execute(select(func.pg_advisory_xact_lock(_UPGRADES)))


def encoding(connection: Connection) -> str:
    """How the database encodes text, as it calls that itself."""
    if connection.dialect.name == "sqlite":
        return "UTF8"
    return str(connection.exec_driver_sql("SHOW server_encoding").scalar_one())


def _engine(url: URL) -> Engine:
    if url.drivername == "sqlite":
        engine = create_engine(url, hide_parameters=True)
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    try:
        engine = create_engine(
            url,
            hide_parameters=True,
            pool_size=POOL,
            max_overflow=OVERFLOW,
            pool_timeout=WAIT_SECONDS,
            pool_use_lifo=True,
            connect_args={"client_encoding": "utf8"},
        )
    except ImportError:
        raise UsageError(
            "a store on PostgreSQL needs psycopg, which is not installed",
            hint="install it with `pip install 'opsdrill[postgresql]'`",
        ) from None
    event.listen(engine, "do_connect", _connect_in_time)
    event.listen(engine, "connect", _set_up_postgresql)
    event.listen(engine, "checkin", _note_rest)
    event.listen(engine, "checkout", partial(_check_rested, engine.dialect))
    return engine


def _where(url: URL) -> str:
    if url.drivername == "sqlite":
        return url.database or url.render_as_string()
    # Neither the password nor what else follows the address.
    host = url.host or url.query.get("host") or "this machine"
    port = f":{url.port}" if url.port else ""
    return f"{url.database or url.username or 'postgres'} on {host}{port}"


def _connect_in_time(_dialect: Any, _record: Any, _args: Any, options: dict[str, Any]) -> None:
    options.setdefault("connect_timeout", CONNECT_SECONDS)


def _set_up_postgresql(connection: Any, _record: object) -> None:
    connection.autocommit = True
    connection.execute("; ".join(f"SET {name} = '{value}'" for name, value in _SETTINGS.items()))
    connection.autocommit = False


def _note_rest(_connection: Any, record: ConnectionPoolEntry) -> None:
    record.info[_RESTS] = time.monotonic()


def _check_rested(
    dialect: Dialect, connection: Any, record: ConnectionPoolEntry, _pooled: object
) -> None:
    """A server that was started anew in between is no error of the next call."""
    since = record.info.get(_RESTS)
    if since is None:
        return
    # A server that ends a connection says so. Asking it every time would take as long as a query.
    if time.monotonic() - since < REST_SECONDS and not _has_to_say(connection):
        return
    try:
        dialect.do_ping(connection)
    except dialect.loaded_dbapi.Error as error:
        raise InvalidatePoolError from error


def _has_to_say(connection: Any) -> bool:
    """Whether the server sent something that nobody asked for, or is gone."""
    if connection.closed:
        return True
    asked = sockets.poll()
    asked.register(connection.fileno(), sockets.POLLIN)
    return bool(asked.poll(0))


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
