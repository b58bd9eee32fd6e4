"""The store on a real PostgreSQL server: made, upgraded, raced for, and every way it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import select, text
from tests.integration import postgres

from opsdrill.app.stores import opened_store, upgraded_store
from opsdrill.app.wiring import find_place
from opsdrill.errors import Conflict, StoreError, StoreTooNew, UsageError
from opsdrill.model.job import Coverage, JobRecord, Seen
from opsdrill.model.result import Completion, Grade, Result
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec
from opsdrill.model.scenario import Scenario
from opsdrill.store import schema
from opsdrill.store.database import Database
from opsdrill.store.home import open_store
from opsdrill.store.sql import SqlStore
from opsdrill.store.store import Owner, RunFilter, Store
from opsdrill.store.tables import METADATA, RUNS

US = Owner(machine="m", boot="b", pid=1, started=1)
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def url() -> Iterator[str]:
    """An empty database."""
    made = postgres.server().new_database()
    yield made
    postgres.server().drop(made)


@pytest.fixture
def store(url: str, tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path, url)
    yield opened
    opened.close()


def spec(id: str, batch: str | None = None) -> RunSpec:
    return RunSpec(
        id=id,
        batch=batch,
        scenario=Scenario(key="disk-full", title="A full disk", ticket_title="Help"),
        scenario_version="v",
        agent=AgentChoice(adapter="noop"),
        lab=LabChoice(name="sandbox", driver="sandbox"),
        created_at=NOON,
    )


def a_grade(reason: str) -> Grade:
    completion = Completion(status="passed", reason="completed")
    return Grade(verdict="passed", reason=reason, completion=completion)


def ended(run: str, reason: str) -> Result:
    return Result(
        run=run, scenario="disk-full", agent="noop", scenario_version="v", state="done",
        verdict="passed", reason=reason,
    )  # fmt: skip


def name_of(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2]


def all_at_once(count: int, call: Callable[[int], object]) -> list[object]:
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(call, range(count)))


# made and upgraded


def test_migrations_make_the_tables_of_the_metadata(url: str) -> None:
    database = Database(url)
    with database.write() as connection:
        schema.migrate(connection)
    with database.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
    database.close()


def made_of(url: str) -> list[tuple[object, ...]]:
    """Every column, index and constraint of a database."""
    columns = (
        "SELECT table_name, column_name, data_type, is_nullable, collation_name, column_default"
        " FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2"
    )
    indexes = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1"
    keys = (
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE connamespace = 'public'::regnamespace ORDER BY 1"
    )
    server, name = postgres.server(), name_of(url)
    return [row for asked in (columns, indexes, keys) for row in server.execute(asked, name)]


def test_a_new_store_is_what_the_migrations_make(url: str) -> None:
    assert schema.upgrade(url) == schema.VERSIONS[-1]
    other = postgres.server().new_database()
    database = Database(other)
    with database.write() as connection:
        schema.migrate(connection)
    database.close()
    assert made_of(other) == made_of(url)
    assert len(made_of(url)) > 100
    postgres.server().drop(other)


def test_db_upgrade_makes_a_store_on_the_server(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`OPSDRILL_DATABASE_URL` is all that it takes; SQLite stays the default."""
    monkeypatch.setenv("OPSDRILL_DATABASE_URL", url)
    place = find_place(tmp_path / "home", tmp_path)
    assert place.has_store
    assert upgraded_store(place) == schema.VERSIONS[-1]
    with opened_store(place) as store:
        store.plan(spec("r1"))
    assert not (tmp_path / "home" / "store.db").exists()
    monkeypatch.delenv("OPSDRILL_DATABASE_URL")
    with opened_store(find_place(tmp_path / "home", tmp_path)) as store:
        assert store.page(RunFilter()).rows == ()
    assert (tmp_path / "home" / "store.db").exists()


def test_a_program_older_than_the_store_says_so_and_stops(store: Store, url: str) -> None:
    postgres.server().execute("UPDATE alembic_version SET version_num = 'v9999'", name_of(url))
    with pytest.raises(StoreTooNew, match="newer OpsDrill") as caught:
        schema.upgrade(url)
    assert "another database" in str(caught.value.hint)


def test_another_programs_database_is_left_alone(url: str) -> None:
    postgres.server().execute("CREATE TABLE bookmarks (url text)", name_of(url))
    with pytest.raises(StoreError, match="is no store of OpsDrill: it has a table 'bookmarks'"):
        schema.upgrade(url)
    assert {row[0] for row in made_of(url)} == {"bookmarks"}


def test_a_database_that_cannot_hold_every_text_is_refused() -> None:
    options = "ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'"
    url = postgres.server().new_database("template0", options)
    with pytest.raises(StoreError, match="cannot hold every text: it is encoded in LATIN1"):
        schema.upgrade(url)
    postgres.server().drop(url)


# races


def test_of_many_who_begin_a_run_one_does(store: Store) -> None:
    store.plan(spec("r1"))

    def begin(_: int) -> bool:
        try:
            store.begin("r1", US)
        except Conflict:
            return False
        return True

    assert sorted(map(bool, all_at_once(8, begin))) == [False] * 7 + [True]
    assert store.get("r1").attempt == 1


def test_a_run_has_one_end_whoever_comes_first(store: Store) -> None:
    for turn in range(5):
        run = f"r{turn}"
        store.plan(spec(run))
        store.begin(run, US)

        def end(n: int, run: str = run) -> None:
            if n % 4 == 3:
                store.interrupt(run, f"{n}")
            else:
                store.finish(run, ended(run, f"{n}"), a_grade(f"{n}"))

        all_at_once(8, end)
        kept, grades = store.get(run), store.grades(run)
        assert kept.result is not None
        if kept.state == "done":
            assert [grade.grade.reason for grade in grades] == [kept.result.reason]
        else:
            assert (kept.state, grades) == ("interrupted", [])


def test_grades_added_at_once_are_numbered_without_a_gap(store: Store) -> None:
    store.plan(spec("r1"))
    store.finish("r1", ended("r1", "0"), a_grade("0"))
    numbers = all_at_once(8, lambda n: store.add_grade("r1", a_grade(f"{n}"), cause="regrade"))
    assert sorted(map(str, numbers)) == [str(n) for n in range(2, 10)]
    assert [grade.number for grade in store.grades("r1")] == list(range(1, 10))
    latest = store.get("r1").result
    assert latest is not None
    assert store.page(RunFilter()).rows[0].reason == latest.reason


def test_grades_of_many_runs_in_any_order_stand_in_nobodys_way(store: Store) -> None:
    runs = [f"r{n}" for n in range(6)]
    for run in runs:
        store.plan(spec(run))
        store.finish(run, ended(run, ""), a_grade(""))

    def add(n: int) -> None:
        for _ in range(5):
            order = runs if n % 2 else runs[::-1]
            store.add_grades({run: a_grade(f"{n}") for run in order}, cause="regrade")

    all_at_once(4, add)
    assert {len(store.grades(run)) for run in runs} == {21}


def test_the_same_run_planned_or_added_by_many_is_kept_once(store: Store) -> None:
    record = JobRecord(
        format="opsdrill.job/1", job=None, coverage=Coverage(default=Seen(state="whole"))
    )

    def keep(n: int) -> None:
        if n % 2:
            store.plan(spec("r1", "b1"))
        else:
            store.add(spec("r1", "b1"), record, [], ended("r1", f"{n}"), a_grade(f"{n}"))

    all_at_once(8, keep)
    assert store.batch("b1").runs == 1
    assert len(store.grades("r1")) <= 1


def test_a_batch_is_there_as_long_as_it_has_runs(store: Store) -> None:
    """Its last run deleted while the next is planned: the batch neither stays nor is lost."""

    def come_and_go(n: int) -> None:
        for turn in range(15):
            store.plan(spec(f"r{n}-{turn}", "b1"))
            assert store.batch("b1").runs >= 1
            store.delete(f"r{n}-{turn}")

    all_at_once(4, come_and_go)
    assert store.batches().rows == ()


def test_what_is_written_for_a_run_that_is_deleted_raises_no_other_than_keyerror(
    store: Store,
) -> None:
    def write(n: int) -> None:
        for turn in range(30):
            if n == 0:
                store.plan(spec("r1"))
                store.delete("r1")
            else:
                try:
                    store.save_answers("r1", turn, [])
                    store.events("r1")
                except KeyError:
                    pass

    all_at_once(3, write)


def test_a_transaction_that_reads_sees_one_state(store: Store, url: str) -> None:
    store.plan(spec("r1"))
    database = Database(url)
    with database.read() as connection:
        before = connection.execute(select(RUNS.c.state)).scalar()
        store.begin("r1", US)
        assert connection.execute(select(RUNS.c.state)).scalar() == before == "planned"
    database.close()


# refusals


@contextmanager
def refused(says: str, url: str, folder: Path) -> Iterator[None]:
    with pytest.raises(StoreError, match=says) as caught:
        open_store(folder, url)
    assert caught.value.hint
    assert "secret" not in f"{caught.value} {caught.value.hint}"
    yield


def test_a_wrong_password_is_refused_and_shown_nowhere(url: str, tmp_path: Path) -> None:
    wrong = postgres.server().url(name_of(url), postgres.LOCKED, "my-secret/word")
    with refused("takes neither this user nor this password", wrong, tmp_path):
        pass
    with refused("takes neither this user", wrong.replace("my-secret%2Fword", ""), tmp_path):
        pass
    unknown = postgres.server().url(name_of(url), "nobody-secret")
    with pytest.raises(StoreError, match="takes neither this user"):
        open_store(tmp_path, unknown)


def test_the_right_password_opens_it_once_the_user_may(url: str, tmp_path: Path) -> None:
    mine = postgres.server().url(name_of(url), postgres.LOCKED, postgres.PASSWORD)
    with refused("the user may not do that there", mine, tmp_path):
        pass
    postgres.server().execute(f"GRANT ALL ON SCHEMA public TO {postgres.LOCKED}", name_of(url))
    store = open_store(tmp_path, mine)
    store.plan(spec("r1"))
    store.close()


def test_no_server_and_no_database(tmp_path: Path) -> None:
    with refused("has no such database", postgres.server().url("nothing"), tmp_path):
        pass
    with refused("no server answers there", "postgresql://a:secret@127.0.0.1:1/x", tmp_path):
        pass
    socket = f"postgresql://a:secret@/x?host={tmp_path}"
    with refused("no server answers there", socket, tmp_path):
        pass
    with refused("no such server", "postgresql://a:secret@nothing.invalid/x", tmp_path):
        pass


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("53100", "the server's disk is full"),
        ("53200", "the server is out of memory"),
        ("55P03", "another process kept it locked for 30 s"),
        ("40P01", "two processes stood in each other's way"),
        ("57014", "took too long"),
        ("58030", "the server's disk failed"),
        ("XX001", "found the database damaged"),
        ("P0001", "nobody told of this one"),
    ],
)
def test_what_the_server_raises_is_said_in_a_sentence(
    store: Store, url: str, code: str, says: str
) -> None:
    """By SQLSTATE, as a server gives it: a trigger stands for the full disk and the like."""
    postgres.server().execute(
        "CREATE FUNCTION trouble() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" RAISE EXCEPTION 'nobody told of this one' USING ERRCODE = '{code}'; END $$;"
        "CREATE TRIGGER trouble BEFORE INSERT ON runs EXECUTE FUNCTION trouble()",
        name_of(url),
    )
    with pytest.raises(StoreError, match=says) as caught:
        store.plan(spec("r1"))
    assert str(caught.value).startswith(f"the store {name_of(url)} on ")
    assert store.page(RunFilter()).rows == ()
    postgres.server().execute("DROP TRIGGER trouble ON runs", name_of(url))
    store.plan(spec("r1"))


def test_a_server_that_takes_no_changes(store: Store, url: str, tmp_path: Path) -> None:
    store.plan(spec("r1"))
    change = f"ALTER DATABASE {name_of(url)} SET default_transaction_read_only = on"
    postgres.server().execute(change)
    reader = open_store(tmp_path, url)
    assert reader.get("r1").state == "planned"
    with pytest.raises(StoreError, match="the database is read-only"):
        reader.plan(spec("r2"))
    reader.close()


def test_too_many_connections(url: str, tmp_path: Path) -> None:
    schema.upgrade(url)
    server, name = postgres.server(), name_of(url)
    server.execute(f"ALTER DATABASE {name} CONNECTION LIMIT 0")
    server.execute(f"ALTER DATABASE {name} OWNER TO {postgres.LOCKED}")
    mine = server.url(name, postgres.LOCKED, postgres.PASSWORD)
    with refused("too many connections", mine, tmp_path):
        pass


def test_a_call_after_the_server_cut_the_connections_off_works(store: Store, url: str) -> None:
    store.plan(spec("r1"))
    ended = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = "
    assert postgres.server().execute(f"{ended}'{name_of(url)}'")
    assert store.get("r1").state == "planned"


def test_a_call_that_is_cut_off_says_so_and_the_next_one_works(store: SqlStore, url: str) -> None:
    store.plan(spec("r1"))
    with (
        pytest.raises(StoreError, match="the server ended the connection"),
        store._database.write() as connection,
    ):
        connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
    store.begin("r1", US)
    assert store.get("r1").state == "running"


@pytest.mark.parametrize("rest", [0.0, 3600.0], ids=["tried", "heard"])
def test_a_connection_that_the_server_ended_in_between(
    store: Store, url: str, rest: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it rested so long that it is tried, or the server's word to it is there to read."""
    monkeypatch.setattr("opsdrill.store.database.REST_SECONDS", rest)
    for n in range(3):
        store.plan(spec(f"r{n}"))
        ended = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = "
        assert (True,) in postgres.server().execute(f"{ended}'{name_of(url)}'")
    assert store.count(RunFilter()) == 3


def test_a_server_that_stops_and_starts_in_between(tmp_path: Path) -> None:
    if (why := postgres.unavailable()) is not None:
        pytest.skip(why)
    server = postgres.Server()
    store = open_store(tmp_path, server.new_database())
    try:
        store.plan(spec("r1"))
        server.stop()
        for _ in range(2):
            with pytest.raises(StoreError, match="no server answers there"):
                store.get("r1")
        server.start()
        store.begin("r1", US)
        assert store.get("r1").state == "running"
    finally:
        store.close()
        server.close()


def test_a_store_that_crashed_keeps_what_it_said_it_kept(tmp_path: Path) -> None:
    """Every call that came back is in the server's log, whatever becomes of the server."""
    if (why := postgres.unavailable()) is not None:
        pytest.skip(why)
    server = postgres.Server(["synchronous_commit=on"])
    url = server.new_database()
    store = open_store(tmp_path, url)
    try:
        for n in range(20):
            store.plan(spec(f"r{n}"))
        server.crash()
        server.start()
        assert store.count(RunFilter()) == 20
    finally:
        store.close()
        server.close()


def test_no_url_of_another_kind(tmp_path: Path) -> None:
    for wrong in (
        "mysql://me:secret@server/x",
        "no url secret",
        "postgresql+asyncpg://a:secret@b/c",
    ):
        with pytest.raises(UsageError) as caught:
            open_store(tmp_path, wrong)
        assert "secret" not in f"{caught.value} {caught.value.hint}"
        assert "postgresql://" in str(caught.value.hint)


def test_settings_that_hold_a_password_show_it_nowhere(tmp_path: Path) -> None:
    (tmp_path / "opsdrill.toml").write_text('database-url = "postgresql://a:secret@b/c"\n')
    place = find_place(tmp_path / "home", tmp_path)
    assert place.settings.database_url == "postgresql://a:secret@b/c"
    assert ":secret@" not in repr(place)
