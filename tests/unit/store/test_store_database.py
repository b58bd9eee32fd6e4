"""URLs of databases, and what is said of one that cannot be used; no server is needed."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import errors
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from opsdrill.errors import StoreError, UsageError
from opsdrill.store.database import Database, read_url
from opsdrill.store.refusals import explain


@pytest.mark.parametrize("name", ["postgresql", "postgres", "postgresql+psycopg"])
def test_postgresql_is_spoken_to_by_psycopg(name: str) -> None:
    url = read_url(f"{name}://mona:pass%2Fword@server:5433/drills?sslmode=require")
    assert url.drivername == "postgresql+psycopg"
    assert (url.username, url.password, url.host, url.port) == ("mona", "pass/word", "server", 5433)
    assert (url.database, url.query["sslmode"]) == ("drills", "require")


@pytest.mark.parametrize(
    ("url", "where"),
    [
        ("postgresql://mona:secret@server:5433/drills?sslpassword=secret", "drills on server:5433"),
        ("postgresql://mona:secret@/drills?host=/run/pg", "drills on /run/pg"),
        ("postgresql://mona:secret@server", "mona on server"),
        ("postgresql://", "postgres on this machine"),
        ("sqlite:////data/store.db", "/data/store.db"),
    ],
)
def test_a_database_is_named_without_a_secret(url: str, where: str) -> None:
    database = Database(url)
    assert database.where == where
    database.close()


@given(st.text(max_size=40))
def test_no_url_is_an_error_in_words_that_never_shows_it(text: str) -> None:
    try:
        read_url(f"{text}9s3cr3t")
    except UsageError as error:
        assert "9s3cr3t" not in f"{error} {error.hint}" or "kind" in str(error)


def test_a_password_in_an_odd_url_is_not_shown() -> None:
    for url in (
        "postgresql://a:9s3cr3t@h:port/x",
        "postgresql://a:9s3cr3t@h:99999999/x",
        "9s3cr3t",
    ):
        try:
            database = Database(url)
        except UsageError as error:
            assert "9s3cr3t" not in f"{error} {error.hint}"
        else:
            assert "9s3cr3t" not in database.where
            with pytest.raises(StoreError) as caught, database.read():
                pass
            assert "9s3cr3t" not in f"{caught.value} {caught.value.hint}"
            database.close()


def connecting(words: str) -> OperationalError:
    return OperationalError("", None, psycopg.OperationalError(words))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ('FATAL:  password authentication failed for user "database role"', "nor this password"),
        ('FATAL:  database "password" does not exist', "no such database"),
        ('FATAL:  role "x" does not exist', "neither this user"),
        ('FATAL:  too many connections for database "x"', "too many connections"),
        ("FATAL:  sorry, too many clients already", "too many connections"),
        ("FATAL:  remaining connection slots are reserved for superusers", "too many connections"),
        ("FATAL:  the database system is starting up", "starting or stopping"),
        ("FATAL:  the database system is not yet accepting connections", "not yet accepting"),
        ("connection timeout expired", "does not answer in time"),
        ("etwas\n  ganz anderes", "etwas ganz anderes"),
    ],
)
def test_what_a_server_says_while_it_is_connected_to(words: str, says: str) -> None:
    error = explain(connecting(words), "drills on server")
    assert str(error).startswith("the store drills on server cannot be used: ")
    assert says in str(error)
    assert "\n" not in str(error)


def test_a_long_text_of_a_server_is_cut() -> None:
    assert len(str(explain(connecting("x" * 100_000), "d"))) < 400


def test_codes_are_read_by_their_longest_beginning() -> None:
    for wrong, says in (
        (errors.AdminShutdown("x"), "ended the connection"),
        (errors.CannotConnectNow("x"), "starting or stopping"),
        (errors.DiskFull("x"), "disk is full"),
        (errors.QueryCanceled("x"), "took too long"),
        (errors.DeadlockDetected("x"), "each other's way"),
        (errors.InsufficientPrivilege("x"), "may not do that"),
    ):
        assert says in str(explain(OperationalError("", None, wrong), "d"))


def test_a_process_that_asks_for_too_much_at_once() -> None:
    assert "busy for 30 s" in str(explain(PoolTimeout("x"), "d"))


def test_an_error_of_sqlite_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_text("no database at all" * 100)
    database = Database(f"sqlite:///{tmp_path}/store.db")
    with pytest.raises(StoreError, match="it is no database") as caught, database.read():
        pass
    assert caught.value.hint
    database.close()
