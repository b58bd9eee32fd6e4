"""Opening a store: new, up to date, older, newer, somebody else's."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

from opsdrill.errors import StoreError, StoreTooNew
from opsdrill.store import schema
from opsdrill.store.database import Database
from opsdrill.store.folder import DATABASE
from opsdrill.store.home import database_url, open_store
from opsdrill.store.tables import METADATA


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    opened = Database(database_url(path))
    yield opened
    opened.close()


def made_of(path: Path) -> list[tuple[str, str, str]]:
    """Every table and index of a database as the words that make it."""
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(
            "SELECT type, name, coalesce(sql, '') FROM sqlite_master ORDER BY type, name"
        ).fetchall()
    return [(kind, name, " ".join(sql.split())) for kind, name, sql in found]


def change_version(path: Path, version: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (version,))


def test_migrations_make_the_tables_of_the_metadata(database: Database) -> None:
    with database.write() as connection:
        schema.migrate(connection)
    with database.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []


def test_a_new_store_is_what_the_migrations_make(tmp_path: Path) -> None:
    """A new store is made from the metadata, without Alembic: to the word the same."""
    made, migrated = tmp_path / "made.db", tmp_path / "migrated.db"
    schema.upgrade(database_url(made))
    database = Database(database_url(migrated))
    with database.write() as connection:
        schema.migrate(connection)
    database.close()
    assert made_of(migrated) == made_of(made)
    with closing(sqlite3.connect(made)) as connection:
        assert connection.execute("SELECT * FROM alembic_version").fetchall() == [
            (schema.VERSIONS[-1],)
        ]


def test_the_versions_are_those_of_the_migrations() -> None:
    config = Config()
    config.set_main_option("script_location", str(schema.MIGRATIONS))
    script = ScriptDirectory.from_config(config)
    revisions = [revision.revision for revision in script.walk_revisions()]
    assert tuple(reversed(revisions)) == schema.VERSIONS
    assert script.get_heads() == [schema.VERSIONS[-1]]


def test_opening_needs_no_alembic(tmp_path: Path) -> None:
    """Opening must be quick: neither a new store nor a current one imports Alembic."""
    code = (
        "import sys; from pathlib import Path; from opsdrill.store.home import open_store\n"
        "for _ in range(2): open_store(Path(sys.argv[1])).close()\n"
        "assert 'alembic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "home")], check=True, timeout=60)


def test_the_protocol_needs_no_database() -> None:
    code = "import sys, opsdrill.store.store; assert 'sqlalchemy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.fixture
def later(tmp_path: Path) -> Path:
    """The migrations with one more."""
    folder = tmp_path / "migrations % of later"
    shutil.copytree(schema.MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "versions" / "v9999.py").write_text(
        "import sqlalchemy as sa\n"
        "from alembic import op\n"
        f"revision, down_revision = 'v9999', {schema.VERSIONS[-1]!r}\n"
        "branch_labels = depends_on = None\n"
        "def upgrade():\n"
        "    op.add_column('runs', sa.Column('colour', sa.Text()))\n"
        "    op.create_table('more', sa.Column('x', sa.Integer(), primary_key=True))\n"
    )
    return folder


def test_an_older_store_is_brought_up_to_date(database: Database, path: Path, later: Path) -> None:
    schema.prepare(database)
    versions = (*schema.VERSIONS, "v9999")
    schema.prepare(database, versions=versions, migrations=later)
    schema.prepare(database, versions=versions, migrations=later)
    with database.read() as connection:
        assert schema.version(connection) == "v9999"
    assert any("colour" in sql for _, name, sql in made_of(path) if name == "runs")


def test_a_migration_that_fails_leaves_the_store_as_it_was(
    database: Database, path: Path, later: Path
) -> None:
    schema.prepare(database)
    before = made_of(path)
    broken = later / "versions" / "v9999.py"
    broken.write_text(broken.read_text() + "    raise RuntimeError('half way')\n")
    with pytest.raises(RuntimeError, match="half way"):
        schema.prepare(database, versions=(*schema.VERSIONS, "v9999"), migrations=later)
    assert made_of(path) == before
    with database.read() as connection:
        assert schema.version(connection) == schema.VERSIONS[-1]


def test_a_program_older_than_the_store_says_so_and_stops(tmp_path: Path) -> None:
    """A program that is older than the store stops, and says why."""
    open_store(tmp_path).close()
    change_version(tmp_path / DATABASE, "v9999")
    before = (tmp_path / DATABASE).read_bytes()
    with pytest.raises(StoreTooNew, match="newer OpsDrill") as caught:
        open_store(tmp_path)
    assert str(tmp_path / DATABASE) in str(caught.value)
    assert caught.value.hint is not None
    assert caught.value.fault == "operator"
    assert (tmp_path / DATABASE).read_bytes() == before


def test_another_programs_database_is_left_alone(database: Database, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    with pytest.raises(StoreError, match="is no store of OpsDrill: it has a table 'bookmarks'"):
        schema.prepare(database)
    assert [name for _, name, _ in made_of(path)] == ["bookmarks"]


def test_a_new_store_waits_for_others_that_open_it(path: Path) -> None:
    """SQLite does not wait by itself when it switches to a write-ahead log."""
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE x (y)")
    other.execute("DROP TABLE x")
    other.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.3, other.execute, ("ROLLBACK",))
    release.start()
    try:
        assert schema.upgrade(database_url(path)) == schema.VERSIONS[-1]
    finally:
        release.join()
        other.close()


def test_upgrade_makes_a_store_and_tells_its_version(path: Path) -> None:
    assert schema.upgrade(database_url(path)) == schema.VERSIONS[-1]
    assert schema.upgrade(database_url(path)) == schema.VERSIONS[-1]


def test_sqlite_is_set_up_for_several_processes(database: Database) -> None:
    """What is committed survives a power cut (WAL, synchronous FULL is 2), writers wait for each
    other for 30 s, and foreign keys hold."""
    schema.prepare(database)
    with database.read() as connection:
        found = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "busy_timeout", "foreign_keys")
        }
    assert found == {
        "journal_mode": "wal",
        "synchronous": 2,
        "busy_timeout": 30000,
        "foreign_keys": 1,
    }


def test_the_tables_are_words_that_postgresql_knows_too() -> None:
    """Nothing of SQLite's own but in variants: every table and index compiles for PostgreSQL."""
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    words = [str(CreateTable(table).compile(dialect=dialect)) for table in METADATA.sorted_tables]
    for table in METADATA.sorted_tables:
        words += [str(CreateIndex(index).compile(dialect=dialect)) for index in table.indexes]
    text = "\n".join(words)
    assert "number BIGSERIAL" in text
    assert 'id TEXT COLLATE "C"' in text
    assert "ROWID" not in text.upper()
    assert "AUTOINCREMENT" not in text.upper()
