"""A store of an earlier version keeps what is in it when it is brought up to date."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, MetaData, Table, select, update
from tests.integration import postgres

from opsdrill.hosts.lease import Claim
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec
from opsdrill.model.scenario import Scenario
from opsdrill.store import documents, rows, schema
from opsdrill.store.backfill import AT_ONCE
from opsdrill.store.database import Database
from opsdrill.store.documents import Body, pack
from opsdrill.store.files import Files
from opsdrill.store.folder import DATABASE, FILES
from opsdrill.store.home import database_url, open_store
from opsdrill.store.store import Owner, RunFilter, Store
from opsdrill.store.tables import DOCUMENTS

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database of a data folder, or on a server; empty."""
    if request.param == "sqlite":
        (tmp_path / FILES).mkdir()
        yield database_url(tmp_path / DATABASE)
        return
    made = postgres.server().new_database()
    yield made
    postgres.server().drop(made)


def reopened(url: str, home: Path) -> Store:
    return open_store(home, None if url.startswith("sqlite") else url)


def spec(
    id: str, *, batch: str | None = None, minute: int = 0, title: str = "t", agent: str = "noop"
) -> RunSpec:
    scenario = Scenario(key="drill", title=title, ticket_title="t", tags=("net", "web"))
    return RunSpec(
        id=id,
        batch=batch,
        scenario=scenario,
        scenario_version="v",
        agent=AgentChoice(adapter=agent),
        lab=LabChoice(name="sandbox", driver="sandbox"),
        labels={"team": "sre"},
        created_at=NOON + timedelta(minutes=minute),
    )


def make_old(connection: Connection, version: str) -> Table:
    """The tables of an earlier version; gives that of runs."""
    config = Config()
    config.set_main_option("script_location", str(schema.MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, version)
    assert schema.version(connection) == version
    return Table("runs", MetaData(), autoload_with=connection)


def keep(connection: Connection, runs: Table, specs: list[RunSpec], files: Path) -> None:
    """Keep planned runs as an earlier version did."""
    connection.execute(runs.insert(), [rows.planned(one) for one in specs])
    numbers = {row.id: row.number for row in connection.execute(select(runs.c.id, runs.c.number))}
    bodies = []
    for one in specs:
        content = documents.dump(documents.SPEC, one)
        body = pack(content) or Body("file", bytes.fromhex(Files(files).put(content)))
        place = {"run": numbers[one.id], "attempt": 0, "kind": "spec", "name": ""}
        bodies.append(place | {"form": body.form, "body": body.data})
    connection.execute(DOCUMENTS.insert(), bodies)


def test_a_store_without_leases_gets_them_and_keeps_its_runs(url: str, tmp_path: Path) -> None:
    database = Database(url)
    with database.write() as connection:
        runs = make_old(connection, "v0001")
        keep(connection, runs, [spec("r1")], tmp_path / FILES)
    database.close()
    store = reopened(url, tmp_path)
    assert [row.id for row in store.page(RunFilter()).rows] == ["r1"]
    book = store.leases(Owner("here", "boot", 1, 1), lambda _: False)
    assert book.take(Claim("r1", 1, {"ssh web-01:22": "web-01"})).held
    store.close()


def test_a_store_without_batches_labels_and_tags_gets_them(url: str, tmp_path: Path) -> None:
    """Read from the specs of the runs, be they in rows or in files, page by page."""
    long = random.Random(0).randbytes(60_000).hex()
    specs = [spec(f"r{n:04}", batch=f"b{n % 3}", minute=n) for n in range(AT_ONCE + 1)]
    specs += [spec("long", title=long, minute=-5, batch="b1"), spec("alone", minute=9999)]
    database = Database(url)
    with database.write() as connection:
        runs = make_old(connection, "v0002")
        keep(connection, runs, specs, tmp_path / FILES)
    database.close()
    store = reopened(url, tmp_path)
    assert store.count(RunFilter(labels=(("team", "sre"),))) == len(specs)
    assert store.count(RunFilter(scenario_tag="web")) == len(specs)
    first = store.page(RunFilter(scenario_tag="net"), limit=2)
    assert [row.id for row in first.rows] == ["alone", f"r{AT_ONCE:04}"]
    assert [(row.id, row.created_at) for row in store.batches().rows] == [
        ("b2", NOON + timedelta(minutes=2)),
        ("b0", NOON),
        ("b1", NOON - timedelta(minutes=5)),
    ]
    assert store.batch("b1").runs == len([one for one in specs if one.batch == "b1"])
    store.plan(spec("new", batch="b0", minute=99999))
    assert store.page(RunFilter(labels=(("team", "sre"),)), limit=1).rows[0].id == "new"
    store.delete("long")
    assert store.batch("b0").runs == len([one for one in specs if one.batch == "b0"]) + 1
    store.close()


def test_a_spec_that_cannot_be_read_back_stops_no_upgrade(url: str, tmp_path: Path) -> None:
    """The run stays, without labels and tags."""
    database = Database(url)
    with database.write() as connection:
        runs = make_old(connection, "v0002")
        keep(connection, runs, [spec("r1"), spec("r2"), spec("r3"), spec("r4")], tmp_path / FILES)
        for run, form, body in ((1, "zlib", b"no"), (2, "json", b"[1]"), (3, "file", b"x" * 32)):
            where = DOCUMENTS.c.run == run
            connection.execute(update(DOCUMENTS).where(where).values(form=form, body=body))
    database.close()
    store = reopened(url, tmp_path)
    assert store.count(RunFilter()) == 4
    assert [row.id for row in store.page(RunFilter(labels=(("team", "sre"),))).rows] == ["r4"]
    store.close()
