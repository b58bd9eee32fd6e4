"""Listings walk an index in the order of the page, whatever they are narrowed to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, event

from opsdrill.store import queries
from opsdrill.store.database import Database
from opsdrill.store.home import database_url
from opsdrill.store.schema import prepare
from opsdrill.store.store import RunFilter


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    database = Database(database_url(tmp_path_factory.mktemp("queries") / "store.db"))
    prepare(database)
    with database.read() as opened:
        yield opened
    database.close()


def plan_of(connection: Connection, filter: RunFilter, after: tuple[int, int] | None) -> list[str]:
    """How SQLite would answer the query of a listing."""
    asked: list[tuple[str, object]] = []

    def note(
        _conn: object, _cursor: object, text: str, values: object, _context: object, _many: object
    ) -> None:
        asked.append((text, values))

    event.listen(connection, "before_cursor_execute", note)
    try:
        queries.listed(connection, filter, 50, after)
    finally:
        event.remove(connection, "before_cursor_execute", note)
    text, values = asked[0]
    found = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", values)  # type: ignore[arg-type]
    return [str(row.detail) for row in found]


@pytest.mark.parametrize("after", [None, (1, 1)], ids=["first", "behind"])
@pytest.mark.parametrize(
    ("filter", "index"),
    [
        (RunFilter(), "created_at"),
        (RunFilter(scenario="a"), "scenario"),
        (RunFilter(agent="a"), "agent"),
        (RunFilter(batch="a"), "batch"),
        (RunFilter(verdict="failed"), "verdict"),
        (RunFilter(state="done"), "state"),
        (RunFilter(state="done", agent="a"), "agent"),
        (RunFilter(state="running", agent="a", scenario="b"), "state"),
        (RunFilter(state="done", verdict="error"), "verdict"),
        (RunFilter("a", "b", "done", "failed", "c"), "batch"),
    ],
    ids=str,
)
def test_a_listing_walks_the_narrowest_index_and_sorts_nothing(
    connection: Connection, filter: RunFilter, index: str, after: tuple[int, int] | None
) -> None:
    (step,) = plan_of(connection, filter, after)
    name = "ix_runs_created_at_number" if index == "created_at" else f"ix_runs_{index}_created_at"
    assert f"USING INDEX {name}" in step
