"""Every store that must keep the contract. Another one is one line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest
from tests.integration import postgres

from opsdrill.store.folder import FILES
from opsdrill.store.home import database_url
from opsdrill.store.memory import MemoryStore
from opsdrill.store.sql import SqlStore
from opsdrill.store.store import Store
from opsdrill.store.tables import METADATA

Clock = Callable[[], datetime]
Maker = Callable[[Clock], Store]


def now() -> datetime:
    return datetime.now(UTC)


def on_sqlite(folder: Path, clock: Clock) -> Store:
    return SqlStore(database_url(folder / "store.db"), folder / FILES, clock)


def on_postgresql(folder: Path, clock: Clock) -> Store:
    """One database for all tests of this process, emptied for each."""
    store = SqlStore(_database(), folder / FILES, clock)
    tables = ", ".join(table.name for table in METADATA.sorted_tables)
    with store._database.write() as connection:
        connection.exec_driver_sql(f"TRUNCATE {tables} RESTART IDENTITY")
    return store


@cache
def _database() -> str:
    return postgres.server().new_database()


STORES: dict[str, Callable[[Path, Clock], Store]] = {
    "memory": lambda _, clock: MemoryStore(clock),
    "sqlite": on_sqlite,
    "postgresql": on_postgresql,
}


@pytest.fixture(params=sorted(STORES))
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Maker]:
    """Makes a store with a clock; all are closed in the end."""
    opened: list[Store] = []

    def make(clock: Clock) -> Store:
        opened.append(STORES[request.param](tmp_path, clock))
        return opened[-1]

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def store(make_store: Maker) -> Store:
    return make_store(now)
