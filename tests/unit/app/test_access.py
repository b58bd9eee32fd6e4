"""Tokens and sessions, over the stores that keep them."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from opsdrill.app.access import ROLES, Access, Caller, Denied, LoggedIn, digest
from opsdrill.errors import InvalidInput, NotThere, StoreError
from opsdrill.store.access import AccessBook
from opsdrill.store.home import open_store
from opsdrill.store.memory import MemoryStore

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Turned:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Turned:
    return Turned()


@pytest.fixture(params=["memory", "sqlite"])
def book(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AccessBook]:
    store = MemoryStore() if request.param == "memory" else open_store(tmp_path)
    yield store.access()
    store.close()


@pytest.fixture
def access(book: AccessBook, clock: Turned) -> Access:
    return Access(book, clock)


def admitted(found: Caller | Denied) -> Caller:
    assert isinstance(found, Caller), found
    return found


def logged_in(found: LoggedIn | Denied) -> LoggedIn:
    assert isinstance(found, LoggedIn), found
    return found


def test_a_secret_is_its_id_and_32_random_bytes_and_only_its_hash_is_kept(
    access: Access, tmp_path: Path
) -> None:
    """[A2.1]"""
    made = access.create("ci", "run", days=None, by=None)
    assert re.fullmatch(r"od_[0-9a-f]{10}_[A-Za-z0-9_-]{43}", made.secret)
    assert made.secret.startswith(f"od_{made.token.id}_")
    assert made.secret not in repr(made)
    assert admitted(access.by_token(made.secret)) == Caller("ci", "run", made.token.id)
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert made.secret.encode() not in path.read_bytes()


def test_no_two_secrets_are_alike(access: Access) -> None:
    """[A2.1]"""
    made = {access.create("a", "read", days=None, by=None).secret for _ in range(50)}
    assert len(made) == 50


def test_the_first_start_makes_an_admin_and_no_later_one_does(access: Access) -> None:
    """[A2.2] Not even once that token is revoked."""
    made = access.first()
    assert made is not None
    assert admitted(access.by_token(made.secret)).role == "admin"
    access.revoke(made.token.id)
    assert access.first() is None


def test_a_store_with_tokens_gets_no_first_one(access: Access) -> None:
    """[A2.2]"""
    access.create("ci", "read", days=None, by=None)
    assert access.first() is None


@pytest.mark.parametrize("secret", ["", "od_", "x" * 10_000, "od_0123456789_\udcff", "\x00"])
def test_what_nobody_has_is_a_guess(access: Access, secret: str) -> None:
    """[A1.2]"""
    access.create("ci", "read", days=None, by=None)
    assert access.by_token(secret) == Denied("there is no such token", guess=True)


def test_a_part_of_a_secret_or_its_hash_lets_nobody_in(access: Access) -> None:
    """[A1.2]"""
    secret = access.create("ci", "read", days=None, by=None).secret
    for other in (secret[:-1], secret + "x", secret[14:], secret.upper(), digest(secret)):
        assert isinstance(access.by_token(other), Denied)


def test_a_token_expires(access: Access, clock: Turned) -> None:
    """[A2.3] Its holder is told so: that is no guess."""
    made = access.create("ci", "run", days=2, by="boss")
    assert made.token.expires_at == START + timedelta(days=2)
    clock.now += timedelta(days=2) - timedelta(seconds=1)
    assert isinstance(access.by_token(made.secret), Caller)
    clock.now += timedelta(seconds=1)
    assert access.by_token(made.secret) == Denied("the token ci has expired")
    assert access.state(access.token(made.token.id)) == "expired"


def test_a_revoked_token_is_over_and_so_are_its_sessions(access: Access) -> None:
    """[A2.4]"""
    made, other = (access.create(name, "run", days=None, by=None) for name in "ab")
    session = logged_in(access.log_in(made.secret))
    others = logged_in(access.log_in(other.secret))
    assert access.state(access.revoke(made.token.id)) == "revoked"
    assert access.by_token(made.secret) == Denied("the token a was revoked")
    assert isinstance(access.by_session(session.secret), Denied)
    assert isinstance(access.log_in(made.secret), Denied)
    assert admitted(access.by_session(others.secret)).name == "b"


def test_a_token_that_is_not_there_cannot_be_revoked(access: Access) -> None:
    with pytest.raises(NotThere, match="there is no token 'x'"):
        access.revoke("x")


def test_its_use_is_noted_at_most_once_a_minute(access: Access, clock: Turned) -> None:
    """[A2.5]"""
    made = access.create("ci", "run", days=None, by=None)
    access.by_token(made.secret)
    clock.now += timedelta(seconds=59)
    access.by_token(made.secret)
    assert access.token(made.token.id).last_used_at == START
    clock.now += timedelta(seconds=1)
    access.by_token(made.secret)
    assert access.token(made.token.id).last_used_at == START + timedelta(minutes=1)


def test_who_only_reads_may_do_so_on_a_store_that_takes_nothing_more(
    access: Access, book: AccessBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[A2.5] That a token was used is less than what it was used for."""
    made = access.create("ci", "read", days=None, by=None)

    def full(id: str, at: datetime) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(book, "used", full)
    assert isinstance(access.by_token(made.secret), Caller)


def test_a_session_is_over_after_12_hours_whatever_happens_meanwhile(
    access: Access, clock: Turned
) -> None:
    """[A3.3]"""
    session = logged_in(access.log_in(access.create("me", "edit", days=None, by=None).secret))
    for _ in range(12):
        assert admitted(access.by_session(session.secret)).session
        clock.now += timedelta(hours=1)
    assert access.by_session(session.secret) == Denied("the session is over")


def test_a_session_is_over_with_its_token(access: Access, clock: Turned) -> None:
    """[A3.3]"""
    made = access.create("me", "edit", days=1, by=None)
    clock.now += timedelta(hours=23)
    session = logged_in(access.log_in(made.secret))
    clock.now += timedelta(hours=1)
    assert isinstance(access.by_session(session.secret), Denied)


def test_a_session_is_over_when_it_is_logged_out(access: Access) -> None:
    """[A3.3] Another one of the same token is not."""
    made = access.create("me", "edit", days=None, by=None)
    one, two = (logged_in(access.log_in(made.secret)) for _ in range(2))
    access.log_out(one.secret)
    assert isinstance(access.by_session(one.secret), Denied)
    assert isinstance(access.by_session(two.secret), Caller)
    access.log_out("never there")


def test_sessions_differ_in_everything(access: Access) -> None:
    """[A3.2] The CSRF token of one is no other's, nor that of who has no session."""
    made = access.create("me", "edit", days=None, by=None)
    one, two = (logged_in(access.log_in(made.secret)).caller for _ in range(2))
    assert one.csrf is not None
    assert one.sent(one.csrf)
    assert not two.sent(one.csrf)
    assert not one.sent("")
    assert not one.sent("\udcff")
    assert not admitted(access.by_token(made.secret)).sent("")


def test_a_csrf_token_is_compared_in_constant_time(
    access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[A3.2] How long a refusal takes does not say how much of it was right."""
    compared: list[tuple[bytes, bytes]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return one == other

    made = access.create("me", "edit", days=None, by=None)
    caller = logged_in(access.log_in(made.secret)).caller
    monkeypatch.setattr(hmac, "compare_digest", compare)
    assert caller.csrf is not None
    assert not caller.sent("x")
    assert caller.sent(caller.csrf)
    assert [other for _, other in compared] == [b"x", caller.csrf.encode()]


def test_a_token_is_no_session_and_a_session_no_token(access: Access) -> None:
    """[A3.1]"""
    made = access.create("me", "edit", days=None, by=None)
    session = logged_in(access.log_in(made.secret))
    assert isinstance(access.by_session(made.secret), Denied)
    assert isinstance(access.by_token(session.secret), Denied)


@pytest.mark.parametrize("name", ["", "  ", "a" * 101, "a\nb", "\x1b[31m", "a\udcff", "a\u202eb"])
def test_a_name_that_cannot_be_shown_is_refused(access: Access, name: str) -> None:
    with pytest.raises(InvalidInput, match="name must"):
        access.create(name, "read", days=None, by=None)
    assert access.tokens() == []


@pytest.mark.parametrize("days", [0, -1, 3651])
def test_a_time_that_cannot_be_is_refused(access: Access, days: int) -> None:
    """[A2.3]"""
    with pytest.raises(InvalidInput, match="expires_in_days must be from 1 to 3650"):
        access.create("a", "read", days=days, by=None)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_do_all_that_those_before_it_may(access: Access, role: str) -> None:
    """[A1.3]"""
    has = Caller("a", role, "1")  # type: ignore[arg-type]
    assert [has.may(each) for each in ROLES] == [
        ROLES.index(each) <= ROLES.index(has.role) for each in ROLES
    ]
