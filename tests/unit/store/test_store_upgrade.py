"""A store of an earlier version keeps what is in it when it is brought up to date."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from alembic import command
from alembic.config import Config

from opsdrill.hosts.lease import Claim
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec
from opsdrill.model.scenario import Scenario
from opsdrill.store import rows, schema
from opsdrill.store.database import Database
from opsdrill.store.folder import DATABASE
from opsdrill.store.home import database_url, open_store
from opsdrill.store.store import Owner, RunFilter
from opsdrill.store.tables import RUNS


def test_a_store_without_leases_gets_them_and_keeps_its_runs(tmp_path: Path) -> None:
    scenario = Scenario(key="drill", title="t", ticket_title="t")
    spec = RunSpec(
        id="r1",
        scenario=scenario,
        scenario_version="v",
        agent=AgentChoice(adapter="noop"),
        lab=LabChoice(name="sandbox", driver="sandbox"),
        created_at=datetime.now(UTC),
    )
    database = Database(database_url(tmp_path / DATABASE))
    with database.write() as connection:
        config = Config()
        config.set_main_option("script_location", str(schema.MIGRATIONS))
        config.attributes["connection"] = connection
        command.upgrade(config, "v0001")
        connection.execute(RUNS.insert().values(**rows.planned(spec)))
        assert schema.version(connection) == "v0001"
    database.close()
    store = open_store(tmp_path)
    assert [row.id for row in store.page(RunFilter()).rows] == ["r1"]
    book = store.leases(Owner("here", "boot", 1, 1), lambda _: False)
    assert book.take(Claim("r1", 1, {"ssh web-01:22": "web-01"})).held
    store.close()
