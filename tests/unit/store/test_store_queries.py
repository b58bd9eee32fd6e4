"""Listings walk an index in the order of the page, whatever they are narrowed to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Connection, event
from tests.integration import postgres

from opsdrill.model.run import AgentChoice, LabChoice, RunSpec
from opsdrill.model.scenario import Scenario
from opsdrill.store import queries, rows
from opsdrill.store.database import Database
from opsdrill.store.home import database_url
from opsdrill.store.schema import prepare
from opsdrill.store.store import Order, RunFilter
from opsdrill.store.tables import MARKS, RUNS

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
COUNT = 4200
"""More than are counted to learn what fewest runs have."""


def spec(n: int) -> RunSpec:
    scenario = Scenario(key=f"s-{n % 10}", title="t", ticket_title="t", tags=("linux",))
    return RunSpec(
        id=f"r{n}",
        batch="b" if n < 5 else None,
        scenario=scenario,
        scenario_version="v",
        agent=AgentChoice(adapter="noop"),
        lab=LabChoice(name="sandbox", driver="sandbox"),
        labels={"team": "sre", "night": f"{n // 50}"},
        created_at=NOON + timedelta(minutes=n),
    )


def judged(n: int) -> dict[str, object]:
    if n <= 20:
        return {"state": "planned", "verdict": None, "fault": None}
    verdict, fault = ("failed", "agent") if n % 4 else ("error", "infrastructure")
    return {"state": "done", "verdict": verdict, "fault": fault}


def fill(connection: Connection) -> None:
    """Runs of which all have one agent, one tag and one label, most failed, and few have a night
    or a batch."""
    specs = [spec(n) for n in range(COUNT)]
    planned = [rows.planned(one) | {"number": n} for n, one in enumerate(specs, 1)]
    done = [one | judged(n) for n, one in enumerate(planned)]
    connection.execute(RUNS.insert(), done)
    marks = [{"run": n} | mark for n, one in enumerate(specs, 1) for mark in rows.marks(one)]
    connection.execute(MARKS.insert(), marks)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def connection(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Connection]:
    if request.param == "sqlite":
        url = database_url(tmp_path_factory.mktemp("queries") / "store.db")
    else:
        url = postgres.server().new_database()
    database = Database(url)
    prepare(database)
    with database.write() as opened:
        fill(opened)
    with database.read() as opened:
        yield opened
    database.close()
    if request.param == "postgresql":
        postgres.server().drop(url)


def plans_of(connection: Connection, ask: Callable[[], object]) -> list[str]:
    """How the database answers each query that is asked, a step a line."""
    asked: list[tuple[str, object]] = []

    def note(
        _conn: object, _cursor: object, text: str, values: object, _context: object, _many: object
    ) -> None:
        asked.append((text, values))

    event.listen(connection, "before_cursor_execute", note)
    try:
        ask()
    finally:
        event.remove(connection, "before_cursor_execute", note)
    explain = "EXPLAIN QUERY PLAN" if connection.dialect.name == "sqlite" else "EXPLAIN"
    return [
        "\n".join(str(row[-1]) for row in connection.exec_driver_sql(f"{explain} {text}", values))  # type: ignore[arg-type]
        for text, values in asked
    ]


WHOLE = re.compile(r"SCAN (runs|marks|batches)(?! USING)|Seq Scan|Bitmap|TEMP B-TREE|Sort")
WALKED = re.compile(r"(?:USING (?:COVERING )?INDEX|Index (?:Only )?Scan(?: Backward)? using) (\w+)")


def walked(plan: str) -> list[str]:
    """The indexes that a plan walks, in its order; fails for one that reads a table whole."""
    assert not WHOLE.search(plan), plan
    return WALKED.findall(plan)


@pytest.mark.parametrize("order", ["-created_at", "created_at"])
@pytest.mark.parametrize("after", [None, (1, 1)], ids=["first", "behind"])
@pytest.mark.parametrize(
    ("filter", "index"),
    [
        (RunFilter(), "ix_runs_created_at"),
        (RunFilter(since=NOON, until=NOON), "ix_runs_created_at"),
        (RunFilter(scenario="s-1"), "ix_runs_scenario"),
        (RunFilter(agent="noop"), "ix_runs_agent"),
        (RunFilter(batch="b"), "ix_runs_batch_created_at"),
        (RunFilter(verdict="failed"), "ix_runs_verdict"),
        (RunFilter(fault="agent"), "ix_runs_fault"),
        (RunFilter(state="done"), "ix_runs_state"),
        (RunFilter(scenario_tag="linux"), "ix_marks"),
        (RunFilter(labels=(("team", "sre"),)), "ix_marks"),
        (RunFilter(labels=(("team", "sre"),), since=NOON), "ix_marks"),
        (RunFilter(state="done", agent="noop", since=NOON), "ix_runs_agent"),
        (RunFilter(state="running", agent="noop", scenario="s-1"), "ix_runs_state"),
        (RunFilter(state="planned", scenario="s-1", scenario_tag="linux"), "ix_runs_state"),
        (RunFilter(state="done", verdict="error"), "ix_runs_verdict"),
        # More have both than are counted; the newest failed ones reach further back.
        (RunFilter(scenario_tag="linux", verdict="failed"), "ix_runs_verdict"),
        (RunFilter(labels=(("team", "sre"),), agent="nobody"), "ix_runs_agent"),
        (RunFilter(scenario="s-1", scenario_tag="linux"), "ix_runs_scenario"),
        (RunFilter(scenario="s-1", labels=(("team", "sre"), ("night", "7"))), "ix_marks"),
        (RunFilter("s-1", "noop", "done", "failed", "b"), "ix_runs_batch_created_at"),
    ],
    ids=str,
)
def test_a_listing_walks_the_narrowest_index_and_sorts_nothing(
    connection: Connection,
    filter: RunFilter,
    index: str,
    after: tuple[int, int] | None,
    order: Order,
) -> None:
    """Whatever runs have most of, the index of what fewest have is walked in a page's order."""
    plans = plans_of(connection, lambda: queries.Listing(connection, filter).rows(50, after, order))
    first, *others = walked(plans[-1])
    assert first.startswith(index)
    # By its number, whatever the database knows of the tables: nothing has counted them yet.
    assert all(re.match(r"pk_|sqlite_autoindex", name) for name in others)
    for plan in plans:
        assert walked(plan)


@pytest.mark.parametrize(
    ("filter", "index", "count"),
    [
        (RunFilter(), "ix_runs_created_at", 10),
        (RunFilter(agent="noop"), "ix_runs_agent", 10),
        (RunFilter(scenario="s-1", verdict="failed"), "ix_runs_scenario", 10),
        (RunFilter(scenario="s-1", scenario_tag="linux"), "ix_runs_scenario", 10),
        (RunFilter(scenario_tag="linux", labels=(("team", "sre"),)), "ix_marks", 10),
        (RunFilter(scenario_tag="linux", state="done"), "ix_", 10),
        (RunFilter(batch="b", scenario_tag="linux"), "ix_runs_batch_created_at", 5),
    ],
    ids=str,
)
def test_counting_walks_the_narrowest_index_and_stops_at_its_bound(
    connection: Connection, filter: RunFilter, index: str, count: int
) -> None:
    plans = plans_of(connection, lambda: queries.Listing(connection, filter).count(10))
    first, *others = walked(plans[-1])
    assert first.startswith(index)
    assert all(re.match(r"pk_|sqlite_autoindex", name) for name in others)
    assert all(walked(plan) for plan in plans)
    assert queries.Listing(connection, filter).count(10) == count


@pytest.mark.parametrize(
    "ask",
    [
        lambda connection: queries.batches(connection, 50, (1, 1)),
        lambda connection: queries.batch(connection, "b"),
        lambda connection: queries.batch_counts(connection, ["b", "c"]),
        lambda connection: queries.batch_values(connection, ["b", "c"], "scenario"),
        lambda connection: queries.batch_values(connection, ["b", "c"], "agent"),
    ],
    ids=["batches", "batch", "counts", "scenarios", "agents"],
)
def test_batches_walk_an_index(connection: Connection, ask: Callable[[Connection], object]) -> None:
    (plan,) = plans_of(connection, lambda: ask(connection))
    assert re.search(r"ix_runs_batch|batches", plan)
    assert "Seq Scan" not in plan
    assert not re.search(r"SCAN (runs|batches)(?! USING)", plan)
