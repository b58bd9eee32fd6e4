"""The store of a data folder, made where there is none.

What only has to know where the folder is takes `opsdrill.store.folder`: this here loads the whole
of the database's library.
"""

from __future__ import annotations

import os
from pathlib import Path

from sqlalchemy import URL

from opsdrill.errors import StoreError
from opsdrill.store.folder import DATABASE, FILES
from opsdrill.store.sql import SqlStore
from opsdrill.store.store import Store


def open_store(home: Path, url: str | None = None) -> Store:
    """The store of a data folder, made or brought up to date if need be.

    Args:
        home: the data folder.
        url: the database, where it is on a server; the files lie in the data folder even so.

    Raises:
        UsageError: the URL is none.
        StoreTooNew: a later OpsDrill wrote it.
        StoreError: it cannot be opened; says why.
    """
    _make(home)
    _make(home / FILES)
    if url is not None:
        return SqlStore(url, home / FILES)
    database = home / DATABASE
    try:
        # SQLite gives its other files the mode of this one.
        os.close(os.open(database, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise _unusable(database, error) from error
    return SqlStore(database_url(database), home / FILES)


def database_url(path: Path) -> str:
    """The URL of an SQLite database at `path`, whatever characters are in it."""
    return URL.create("sqlite", database=str(path)).render_as_string(hide_password=False)


def _make(folder: Path) -> None:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise _unusable(folder, error) from error


def _unusable(path: Path, error: OSError) -> StoreError:
    reason = "is in the way" if isinstance(error, FileExistsError) else error.strerror or error
    return StoreError(
        f"the data folder {path} cannot be used: {error.filename or path}: {reason}",
        hint="choose a folder that you can write with --home or OPSDRILL_HOME",
    )
