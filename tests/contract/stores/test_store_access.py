"""Tokens, sessions and idempotency keys, in every store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from opsdrill.errors import Conflict, NotThere, UsageError
from opsdrill.store.access import Session, Token
from opsdrill.store.store import Store

NOON = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)
HOUR = timedelta(hours=1)
HOSTILE = pytest.mark.parametrize("text", ["nul\0", "\ud83d", "\\u0000", "'; DROP TABLE tokens;"])


def token(id: str = "t1", at: datetime = NOON) -> Token:
    return Token(id, f"token of {id}", "run", created_at=at, by="mona")


def session(id: str = "s1", of: str = "t1") -> Session:
    return Session(id, of, "csrf", NOON, NOON + HOUR)


def test_a_token_is_known_by_its_hash_only(store: Store) -> None:
    book = store.access()
    whole = replace(token(), expires_at=NOON + HOUR, last_used_at=NOON)
    book.add_token(whole, "hash")
    assert book.token_by_hash("hash") == whole
    assert book.token_by_hash("t1") is None
    assert book.token_by_hash("HASH") is None
    assert book.token("t1") == whole
    with pytest.raises(NotThere, match="token 't2'"):
        book.token("t2")


def test_an_id_and_a_hash_are_taken_once(store: Store) -> None:
    book = store.access()
    book.add_token(token("t1"), "one")
    for id, hash in (("t1", "two"), ("t2", "one")):
        with pytest.raises(Conflict):
            book.add_token(token(id), hash)
    assert [one.id for one in book.tokens()] == ["t1"]


def test_tokens_are_listed_by_age(store: Store) -> None:
    assert store.access().tokens() == []
    for n, id in enumerate(("b", "a", "c")):
        store.access().add_token(token(id, NOON - n * HOUR), id)
    assert [one.id for one in store.access().tokens()] == ["c", "a", "b"]


def test_the_first_token_is_made_once(store: Store) -> None:
    """First start makes an admin token; of several processes one does."""
    assert not store.access().any_token()

    def first(n: int) -> bool:
        return store.access().add_first(token(f"t{n}"), f"hash {n}")

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(first, range(8))) == [False] * 7 + [True]
    assert store.access().any_token()
    (only,) = store.access().tokens()
    store.access().revoke(only.id, NOON)
    assert store.access().any_token()
    assert not store.access().add_first(token("later"), "later")


def test_revoked_is_revoked_for_good_and_ends_its_sessions(store: Store) -> None:
    book = store.access()
    for id in ("t1", "t2"):
        book.add_token(token(id), id)
        book.add_session(session(f"s of {id}", id), f"session of {id}")
    assert book.token("t1").holds(NOON)
    assert book.revoke("t1", NOON).revoked_at == NOON
    assert book.revoke("t1", NOON + HOUR).revoked_at == NOON
    assert not book.token("t1").holds(NOON)
    assert book.token_by_hash("t1") == replace(token(), revoked_at=NOON)
    assert book.session_by_hash("session of t1", NOON) is None
    assert book.session_by_hash("session of t2", NOON) == session("s of t2", "t2")
    # One that was on its way when the token was revoked holds for nothing.
    book.add_session(session("late", "t1"), "late")
    assert book.session_by_hash("late", NOON) is None
    with pytest.raises(NotThere):
        book.revoke("t3", NOON)


def test_a_token_holds_until_it_expires() -> None:
    ends = replace(token(), expires_at=NOON + HOUR)
    assert ends.holds(NOON + HOUR - timedelta(microseconds=1))
    assert not ends.holds(NOON + HOUR)


def test_when_a_token_was_used_last_never_goes_back(store: Store) -> None:
    book = store.access()
    book.add_token(token(), "hash")
    book.used("t1", NOON + HOUR)
    book.used("t1", NOON)
    book.used("t2", NOON)
    assert book.token("t1").last_used_at == NOON + HOUR


def test_a_session_holds_until_it_or_its_token_is_over(store: Store) -> None:
    book = store.access()
    book.add_token(token(), "long")
    book.add_token(replace(token("t2"), expires_at=NOON + HOUR / 2), "short")
    book.add_session(session(), "one")
    book.add_session(session("s2", "t2"), "two")
    assert book.session_by_hash("one", NOON) == session()
    assert book.session_by_hash("ONE", NOON) is None
    assert book.session_by_hash("s1", NOON) is None
    assert book.session_by_hash("two", NOON) is not None
    assert book.session_by_hash("two", NOON + HOUR / 2) is None
    assert book.session_by_hash("one", NOON + HOUR) is None
    assert book.end_old_sessions(NOON) == 0
    book.end_session("one")
    book.end_session("one")
    assert book.session_by_hash("one", NOON) is None
    assert book.end_old_sessions(NOON + HOUR) == 1
    assert book.session_by_hash("two", NOON) is None


def test_a_session_belongs_to_a_token_that_is_there(store: Store) -> None:
    with pytest.raises(NotThere):
        store.access().add_session(session(), "one")
    store.access().add_token(token(), "hash")
    store.access().add_session(session(), "one")
    with pytest.raises(Conflict):
        store.access().add_session(session("s2"), "one")


@HOSTILE
def test_any_text_of_a_caller_is_only_text(store: Store, text: str) -> None:
    book = store.access()
    kept = replace(token(text), name=text, by=text)
    assert book.token_by_hash(text) is None
    assert book.session_by_hash(text, NOON) is None
    book.add_token(kept, text)
    assert book.token_by_hash(text) == book.token(text) == kept
    book.add_session(session(text, text), text)
    assert book.session_by_hash(text, NOON) == session(text, text)
    requests = store.requests()
    assert requests.claim(text, text, text, NOON).state == "new"
    requests.answer(text, text, text.encode("utf-8", "surrogatepass"))
    answer = requests.claim(text, text, text, NOON).answer
    assert answer == text.encode("utf-8", "surrogatepass")


def test_a_key_is_claimed_once_and_answered_as_before(store: Store) -> None:
    """Idempotency keys on starts: the same key and request give the same answer."""
    book = store.requests()
    assert book.claim("t1", "k", "digest", NOON).state == "new"
    assert book.claim("t1", "k", "digest", NOON).state == "under way"
    book.answer("t1", "k", b'{"runs": []}')
    again = book.claim("t1", "k", "digest", NOON)
    assert (again.state, again.answer) == ("answered", b'{"runs": []}')
    assert book.claim("t2", "k", "digest", NOON).state == "new"


def test_a_key_is_for_one_request(store: Store) -> None:
    book = store.requests()
    book.claim("t1", "k", "digest", NOON)
    with pytest.raises(Conflict, match="another request"):
        book.claim("t1", "k", "other", NOON)
    book.answer("t1", "k", b"")
    with pytest.raises(Conflict, match="another request"):
        book.claim("t1", "k", "other", NOON)
    assert book.claim("t1", "k", "digest", NOON).answer == b""


def test_a_start_that_failed_may_be_sent_again(store: Store) -> None:
    book = store.requests()
    book.claim("t1", "k", "digest", NOON)
    book.release("t1", "k")
    assert book.claim("t1", "k", "other", NOON).state == "new"
    book.answer("t1", "k", b"done")
    book.release("t1", "k")
    assert book.claim("t1", "k", "other", NOON).state == "answered"
    book.release("t9", "nothing")
    book.answer("t9", "nothing", b"")


def test_an_answer_is_kept_for_a_day(store: Store) -> None:
    book = store.requests()
    book.claim("t1", "k", "digest", NOON)
    book.answer("t1", "k", b"done")
    assert book.claim("t1", "k", "digest", NOON + 23 * HOUR).state == "answered"
    assert book.claim("t1", "k", "other", NOON + 24 * HOUR).state == "new"


def test_a_claim_whose_process_is_no_more_ends(store: Store) -> None:
    book = store.requests()
    book.claim("t1", "k", "digest", NOON)
    assert book.claim("t1", "k", "digest", NOON + timedelta(minutes=9)).state == "under way"
    assert book.claim("t1", "k", "digest", NOON + timedelta(minutes=10)).state == "new"


def test_of_many_who_claim_one_key_one_is_new(store: Store) -> None:
    def claim(_: int) -> str:
        return store.requests().claim("t1", "k", "digest", NOON).state

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(claim, range(8))) == ["new"] + ["under way"] * 7


def test_a_key_has_a_bounded_length(store: Store) -> None:
    assert store.requests().claim("t1", "k" * 200, "d", NOON).state == "new"
    with pytest.raises(UsageError, match="at most 200"):
        store.requests().claim("t1", "k" * 201, "d", NOON)
