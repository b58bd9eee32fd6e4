"""The data folder: where everything that OpsDrill keeps lies.

    <home>/
      store.db           runs, evidence, grades (with store.db-wal and -shm while it is open)
      files/             large bodies and support files, by content: files/ab/cdef...
      labs/              the labs known by name, NAME.yaml or NAME/lab.yaml
      drivers/NAME/      what a driver must find again after a crash
      opsdrill.toml      settings

It is `--home`, else `OPSDRILL_HOME`, else `$XDG_DATA_HOME/opsdrill`, else
`~/.local/share/opsdrill`; made on first use, for its owner only (0700).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from sqlalchemy import URL

from opsdrill.errors import StoreError, UsageError
from opsdrill.store.sql import SqlStore
from opsdrill.store.store import Store

DATABASE = "store.db"
FILES = "files"


def data_folder(given: Path | None = None, environment: Mapping[str, str] = os.environ) -> Path:
    """The path of the data folder, absolute; the folder need not exist yet.

    Args:
        given: the value of `--home`; relative to the working folder.

    Raises:
        UsageError: nothing says where a home could be.
    """
    if given is not None:
        return given.absolute()
    if named := environment.get("OPSDRILL_HOME"):
        return Path(named).absolute()
    # XDG's base directory specification: a relative path there counts as not set.
    if (data := environment.get("XDG_DATA_HOME", "")).startswith("/"):
        return Path(data) / "opsdrill"
    try:
        return _user_home(environment) / ".local" / "share" / "opsdrill"
    except RuntimeError:
        raise UsageError(
            "this user has no home folder for OpsDrill's data",
            hint="name one with --home or OPSDRILL_HOME",
        ) from None


def open_store(home: Path) -> Store:
    """The store of a data folder, made or brought up to date if need be.

    Raises:
        StoreTooNew: a later OpsDrill wrote it.
        StoreError: it cannot be opened; says why.
    """
    _make(home)
    _make(home / FILES)
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


def _user_home(environment: Mapping[str, str]) -> Path:
    if (home := environment.get("HOME", "")).startswith("/"):
        return Path(home)
    return Path.home()


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
