"""The store's version: made new, brought up to date, or refused.

A store that is up to date costs one query and no import of Alembic. Everything happens in one
write transaction, so of several processes that open a store at once one does it and the others
find it done.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from sqlalchemy import (
    Column,
    Connection,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    inspect,
    select,
)

from opsdrill.errors import StoreError, StoreTooNew
from opsdrill.store.database import Database, encoding, lock_upgrade
from opsdrill.store.tables import METADATA

VERSIONS = ("v0001", "v0002", "v0003", "v0004")
"""The revisions of `migrations/versions`, oldest first."""
MIGRATIONS = Path(__file__).parent / "migrations"

_PLACE = {False: "data folder with --home", True: "database"}

# Alembic's own table, as Alembic makes it.
_VERSION = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)


def prepare(
    database: Database,
    files: Path | None = None,
    *,
    versions: tuple[str, ...] = VERSIONS,
    migrations: Path = MIGRATIONS,
) -> None:
    """Make the tables of a new store, or bring an older one up to date.

    Args:
        database: the store's.
        files: the folder of files, in which an older store may have what a newer one has in rows.
        versions: the revisions, oldest first.
        migrations: their folder.

    Raises:
        StoreTooNew: a later OpsDrill wrote it.
        StoreError: it cannot be used, or it is some other program's database.
    """
    with database.read() as connection:
        if version(connection) == versions[-1]:
            return
    with database.write() as connection:
        lock_upgrade(connection)
        found = version(connection)
        if found == versions[-1]:
            return
        if found is None:
            _create(connection, database, versions[-1])
        elif found in versions:
            migrate(connection, migrations, files=files)
        else:
            raise StoreTooNew(
                f"the store {database.where} was written by a newer OpsDrill (version {found},"
                f" this one knows {versions[-1]})",
                hint=f"install that OpsDrill, or choose another {_PLACE[database.is_server]}",
            )


def upgrade(url: str, files: Path | None = None) -> str:
    """Bring the store at `url` up to date, making it where there is none; returns its version.

    `files` is its folder of files.

    Raises:
        StoreTooNew, StoreError: as `prepare`.
    """
    database = Database(url)
    try:
        prepare(database, files)
    finally:
        database.close()
    return VERSIONS[-1]


def version(connection: Connection) -> str | None:
    """The store's version; None when it has none yet."""
    if not inspect(connection).has_table(_VERSION.name):
        return None
    return connection.execute(select(_VERSION.c.version_num)).scalar()


def _create(connection: Connection, database: Database, newest: str) -> None:
    if strangers := inspect(connection).get_table_names():
        raise StoreError(
            f"the database {database.where} is no store of OpsDrill: it has a table"
            f" {strangers[0]!r}",
            hint=f"choose another {_PLACE[database.is_server]}",
        )
    if (found := encoding(connection)) != "UTF8":
        raise StoreError(
            f"the database {database.where} cannot hold every text: it is encoded in {found}",
            hint="make it anew with `createdb -E UTF8 -T template0`",
        )
    METADATA.create_all(connection, checkfirst=False)
    _VERSION.create(connection, checkfirst=False)
    connection.execute(_VERSION.insert().values(version_num=newest))


def migrate(
    connection: Connection, migrations: Path = MIGRATIONS, *, files: Path | None = None
) -> None:
    """Run the migrations that are missing, inside the transaction that is open."""
    # Imported by name at run time: it costs a tenth of a second that almost nobody needs.
    command = importlib.import_module("alembic.command")
    config = importlib.import_module("alembic.config").Config()
    config.set_main_option("script_location", str(migrations).replace("%", "%%"))
    config.attributes["connection"] = connection
    config.attributes["files"] = files
    command.upgrade(config, "head")
