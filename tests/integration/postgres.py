"""A PostgreSQL server of its own for tests: a real one, in a temporary folder, on a socket there.

It writes nothing through to the disk, is known to nobody else, and ends with the process that
made it. Root lets the user `postgres` run it, since the server refuses root; an ordinary user runs
it himself.
"""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

PACKAGES = {"initdb": "postgresql", "setpriv": "util-linux"}
"""What a server takes, and the Debian packages it comes from."""
USER = "drill"
PASSWORD = "drill-secret-word"
LOCKED = "locked"
"""A user who must give `PASSWORD`."""
_TRIES = 300


class Server:
    """One server, and as many databases as tests want.

    Args:
        settings: what is set otherwise than by default, e.g. `max_connections=10`.
    """

    def __init__(self, settings: Sequence[str] = ()) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="opsdrill-pg-", dir="/tmp"))
        self._data = self.folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._made = 0
        self._settings = ["fsync=off", "synchronous_commit=off", "full_page_writes=off", *settings]
        atexit.register(self.close)
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres")
        command = [*_as_user(), program("initdb"), "-D", str(self._data), "-U", USER, "-E", "UTF8"]
        command += ["--locale=C.UTF-8", "--auth=trust", "--no-sync", "--no-instructions"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self.folder)
        (self._data / "pg_hba.conf").write_text(
            f"local all {LOCKED} scram-sha-256\nlocal all all trust\n"
        )
        self.start()
        self.execute(f"CREATE ROLE {LOCKED} LOGIN PASSWORD '{PASSWORD}'")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = [*_as_user(), program("postgres"), "-D", str(self._data), "-k", str(self.folder)]
        command += ["--listen_addresses=", *(f"--{setting}" for setting in self._settings)]
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
        )
        for _ in range(_TRIES):
            try:
                self.execute("SELECT 1")
            except psycopg.OperationalError:
                assert self._process.poll() is None, "the server ended"
                time.sleep(0.05)
            else:
                return
        raise AssertionError("the server does not answer")

    def stop(self) -> None:
        """Stop it at once; whoever is connected is cut off."""
        self._end(signal.SIGINT)

    def crash(self) -> None:
        """Let it end without any care for what it has in memory."""
        self._end(signal.SIGQUIT)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    def close(self) -> None:
        """Stop it for good and remove all of it; repeatable."""
        atexit.unregister(self.close)
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """What a statement answers, put to a database by the server's owner."""
        with psycopg.connect(
            host=str(self.folder), user=USER, dbname=database, autocommit=True
        ) as connection:
            found = connection.execute(statement.encode())
            return found.fetchall() if found.description else []

    def url(self, database: str, user: str = USER, password: str | None = None) -> str:
        """A database's URL; it need not be there."""
        secret = "" if password is None else f":{quote(password, safe='')}"
        return f"postgresql://{user}{secret}@/{database}?host={quote(str(self.folder), safe='')}"

    def new_database(self, template: str = "template1", options: str = "") -> str:
        """The URL of a new database."""
        self._made += 1
        name = f"drill_{self._made}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template} {options}")
        return self.url(name)

    def drop(self, url: str) -> None:
        """Remove a database by its URL, whoever is connected."""
        name = url.partition("?")[0].rpartition("/")[2]
        self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def unavailable() -> str | None:
    """Why no server can be had here, naming the package; None where one can."""
    missing = sorted({package for name, package in PACKAGES.items() if _path(name) is None})
    return f"a PostgreSQL server takes the packages {' '.join(missing)}" if missing else None


@cache
def server() -> Server:
    """The one server of this process, made when it is first needed."""
    if (why := unavailable()) is not None:
        pytest.skip(why)
    return Server()


def program(name: str) -> str:
    found = _path(name)
    assert found is not None, name
    return found


def _path(name: str) -> str | None:
    # Debian keeps a server's programs apart, a folder a version.
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    return shutil.which(name, path=os.pathsep.join([*map(str, folders), os.environ["PATH"]]))


def _version(folder: Path) -> float:
    return float(folder.parent.name)


def _as_user() -> list[str]:
    """The beginning of a command that ends with this process."""
    ending = [program("setpriv"), "--pdeathsig", "INT"]
    if os.geteuid() != 0:
        return ending
    user = pwd.getpwnam("postgres")
    return [*ending, f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
