"""The data folder: where it is, whose it is, and one sentence when it cannot be."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from opsdrill.errors import StoreError
from opsdrill.store.folder import DATABASE, data_folder
from opsdrill.store.home import open_store
from opsdrill.store.sql import SqlStore


def test_the_flag_beats_the_environment_beats_the_default(tmp_path: Path) -> None:
    env = {"OPSDRILL_HOME": "/named", "XDG_DATA_HOME": "/data", "HOME": "/home/mona"}
    assert data_folder(tmp_path, env) == tmp_path
    assert data_folder(None, env) == Path("/named")
    assert data_folder(None, env | {"OPSDRILL_HOME": ""}) == Path("/data/opsdrill")
    del env["OPSDRILL_HOME"], env["XDG_DATA_HOME"]
    assert data_folder(None, env) == Path("/home/mona/.local/share/opsdrill")


def test_a_relative_xdg_folder_counts_as_not_set() -> None:
    """XDG base directory specification: all paths must be absolute, others are ignored."""
    env = {"XDG_DATA_HOME": "data", "HOME": "/home/mona"}
    assert data_folder(None, env) == Path("/home/mona/.local/share/opsdrill")


def test_the_path_is_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert data_folder(Path("here"), {}) == tmp_path / "here"
    assert data_folder(None, {"OPSDRILL_HOME": "there"}) == tmp_path / "there"


def test_the_folder_is_for_its_owner_only(tmp_path: Path) -> None:
    """Evidence holds what agents and hosts said: nobody else's business."""
    before = os.umask(0)
    try:
        store = open_store(tmp_path / "new" / "home")
        store.put_file(b"x")
    finally:
        os.umask(before)
    home = tmp_path / "new" / "home"
    assert home.stat().st_mode & 0o777 == 0o700
    modes = {path.name: path.stat().st_mode & 0o077 for path in home.rglob("*")}
    store.close()
    assert "store.db-wal" in modes
    assert set(modes.values()) == {0}


@pytest.mark.parametrize("name", ["with space", "percent%20", "query?x=1#y", "ünï", "quote'\""])
def test_any_folder_name_will_do(tmp_path: Path, name: str) -> None:
    store = open_store(tmp_path / name)
    store.close()
    assert (tmp_path / name / DATABASE).is_file()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def refused(home: Path) -> StoreError:
    with pytest.raises(StoreError) as caught:
        open_store(home)
    assert "\n" not in str(caught.value)
    assert str(home) in str(caught.value)
    assert caught.value.hint is not None
    return caught.value


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert "file: is in the way" in str(refused(tmp_path / "file" / "home"))
    assert "the data folder /proc/opsdrill cannot be used" in str(refused(Path("/proc/opsdrill")))


def test_a_database_that_is_none(tmp_path: Path) -> None:
    (tmp_path / DATABASE).write_text("this is a letter to my aunt, " * 100)
    assert "it is no database" in str(refused(tmp_path))


def test_a_damaged_database(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    path = tmp_path / DATABASE
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xa5" * (len(content) - 4096))
    assert "it is damaged" in str(refused(tmp_path))


def test_a_folder_in_the_databases_place(tmp_path: Path) -> None:
    (tmp_path / DATABASE).mkdir()
    refused(tmp_path)


def test_a_read_only_folder(tmp_path: Path) -> None:
    """As an ordinary user, also when the tests run as root, whom no mode stops."""
    home = tmp_path / "home"
    open_store(home).close()
    for path in [*home.rglob("*"), home]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    code = (
        "import os, sys; from pathlib import Path\n"
        "from opsdrill.errors import StoreError; from opsdrill.store.home import open_store\n"
        "os.chdir(sys.argv[1])\n"
        "if os.getuid() == 0: os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "try: open_store(Path('.'))\n"
        "except StoreError as error: print(error, '|', error.hint)\n"
        "else: raise SystemExit('it was opened')"
    )
    try:
        done = subprocess.run(
            [sys.executable, "-c", code, str(home)],
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )
    finally:
        home.chmod(0o700)
    assert done.returncode == 0, done.stderr
    assert "cannot be used" in done.stdout
    assert "--home" in done.stdout


def test_a_full_disk(tmp_path: Path) -> None:
    """SQLite's own page limit makes it say what it says when the disk is full."""
    store = open_store(tmp_path)
    assert isinstance(store, SqlStore)
    with store._database.read() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")
    with pytest.raises(StoreError, match="the disk is full"):
        for n in range(500):
            store.put_file(str(n).encode())
    store.close()


def test_a_store_that_stays_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opsdrill.store.database.BUSY_MILLISECONDS", 10)
    store = open_store(tmp_path)
    with closing(sqlite3.connect(tmp_path / DATABASE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="kept it locked"):
            store.put_file(b"x")
        assert store.find("r") == [], "whoever only reads is not kept waiting"
        other.execute("ROLLBACK")
    store.put_file(b"x")
    store.close()
