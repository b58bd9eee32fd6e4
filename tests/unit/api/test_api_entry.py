"""Who gets in, and who does not: tokens, roles, browsers, guesses."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import httpx
import pytest
from tests.unit.api.conftest import Api

from opsdrill.api.attempts import FAILURES
from opsdrill.app.access import ROLES, Role

ASKED = {"name": "ci", "role": "read"}


def refused(answer: httpx.Response, status: int, words: str) -> None:
    """It is a problem of this status, which says this."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert words in answer.json()["detail"]


async def test_without_a_token_nobody_gets_in(api: Api) -> None:
    """[A1.2]"""
    answer = await api.client().get("/api/v1/tokens")
    refused(answer, 401, "a token is needed")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "opsdrill token create" in answer.json()["hint"]


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("Bearer od_0123456789_nobodys", "no such token"),
        ("Bearer ", "only `Authorization: Bearer TOKEN`"),
        ("Bearer", "only `Authorization: Bearer TOKEN`"),
        ("Basic YTpi", "only `Authorization: Bearer TOKEN`"),
        ("", "only `Authorization: Bearer TOKEN`"),
        ("Bearer " + "x" * 20_000, "no such token"),
        ("Bearer \xff\xfe", "no such token"),
        ("Bearer ' OR 1=1 --", "no such token"),
    ],
)
async def test_what_is_no_token_is_refused(api: Api, header: str, words: str) -> None:
    """[A1.2]"""
    headers = [(b"authorization", header.encode("latin-1"))]
    refused(await api.client().get("/api/v1/session", headers=headers), 401, words)


async def test_a_request_has_one_token(api: Api) -> None:
    """[A1.2] Of two a proxy may have looked at the other one."""
    two = [(b"authorization", f"Bearer {api.secrets[role]}".encode()) for role in ("admin", "read")]
    refused(await api.client().get("/api/v1/session", headers=two), 400, "one Authorization")
    refused(await api.client().post("/api/v1/tokens", headers=two, json=ASKED), 400, "one Auth")


async def test_the_scheme_is_written_in_any_way(api: Api) -> None:
    """[A1.2] As HTTP has it."""
    headers = {"Authorization": f"bEARER  {api.secrets['read']}"}
    assert (await api.client().get("/api/v1/session", headers=headers)).status_code == 200


@pytest.mark.parametrize("role", ROLES)
async def test_a_token_says_who_calls(api: Api, role: Role) -> None:
    """[A1.3]"""
    told = (await api.client(role).get("/api/v1/session")).json()
    assert (told["name"], told["role"], told["csrf"]) == (role, role, None)


@pytest.mark.parametrize("role", ["read", "run", "edit"])
async def test_a_lower_role_is_not_enough(api: Api, role: Role) -> None:
    """[A1.3]"""
    client = api.client(role)
    token = (await api.client("admin").get("/api/v1/tokens")).json()["tokens"][0]["id"]
    for answer in (
        await client.get("/api/v1/tokens"),
        await client.post("/api/v1/tokens", json=ASKED),
        await client.delete(f"/api/v1/tokens/{token}"),
    ):
        refused(answer, 403, f"this takes the role admin, and {role} has {role}")


async def test_an_expired_token_is_refused(api: Api) -> None:
    """[A2.3]"""
    asked = {**ASKED, "expires_in_days": 1}
    made = (await api.client("admin").post("/api/v1/tokens", json=asked)).json()
    client = api.client(authorization=f"Bearer {made['secret']}")
    assert (await client.get("/api/v1/session")).status_code == 200
    api.clock.turn(timedelta(days=1))
    refused(await client.get("/api/v1/session"), 401, "the token ci has expired")
    listed = (await api.client("admin").get(f"/api/v1/tokens/{made['id']}")).json()
    assert listed["state"] == "expired"


async def test_a_revoked_token_is_refused_at_once_and_its_browser_too(api: Api) -> None:
    """[A2.4]"""
    admin = api.client("admin")
    made = (await admin.post("/api/v1/tokens", json=ASKED)).json()
    client, browser = api.client(authorization=f"Bearer {made['secret']}"), api.client()
    assert (
        await browser.post("/api/v1/session", json={"token": made["secret"]})
    ).status_code == 201
    assert (await admin.delete(f"/api/v1/tokens/{made['id']}")).json()["state"] == "revoked"
    refused(await client.get("/api/v1/session"), 401, "was revoked")
    refused(await browser.get("/api/v1/session"), 401, "the session is over")


async def test_a_new_token_is_shown_once_and_works(api: Api) -> None:
    """[A2.1]"""
    admin = api.client("admin")
    answer = await admin.post("/api/v1/tokens", json=ASKED)
    made = answer.json()
    assert answer.status_code == 201
    assert answer.headers["location"] == f"/api/v1/tokens/{made['id']}"
    assert made["by"] == "admin"
    assert made["secret"].startswith(f"od_{made['id']}_")
    told = await api.client(authorization=f"Bearer {made['secret']}").get("/api/v1/session")
    assert told.json()["token"] == made["id"]
    everything = (await admin.get("/api/v1/tokens")).text
    everything += (await admin.get(f"/api/v1/tokens/{made['id']}")).text
    assert made["secret"] not in everything
    assert made["secret"][14:] not in everything


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ({}, "name"),
        ({"name": "a"}, "role"),
        ({"name": "a", "role": "root"}, "role"),
        ({"name": "", "role": "read"}, "name"),
        ({"name": " ", "role": "read"}, "name"),
        ({"name": "\x1b[31m", "role": "read"}, "name"),
        ({"name": "a", "role": "read", "expires_in_days": 0}, "expires_in_days"),
        ({"name": "a", "role": "read", "expires_in_days": "7"}, "expires_in_days"),
        ({"name": "a", "role": "read", "more": 1}, "more"),
    ],
)
async def test_a_token_that_cannot_be_is_refused_with_its_path(
    api: Api, asked: dict[str, object], path: str
) -> None:
    """[A6.1]"""
    answer = await api.client("admin").post("/api/v1/tokens", json=asked)
    assert answer.status_code == 422
    assert path in [item["path"] for item in answer.json()["errors"]]


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_token_that_is_not_there(api: Api, method: str) -> None:
    answer = await api.client("admin").request(method, "/api/v1/tokens/nobodys")
    refused(answer, 404, "there is no token 'nobodys'")


# browsers


async def test_a_browser_logs_in_and_gets_a_cookie_that_no_script_sees(api: Api) -> None:
    """[A3.1]"""
    answer = await api.client().post("/api/v1/session", json={"token": api.secrets["run"]})
    [cookie] = answer.headers.get_list("set-cookie")
    words = [word.strip().lower() for word in cookie.split(";")]
    assert {"httponly", "samesite=strict", "path=/", "max-age=43200"} <= set(words)
    assert "secure" not in words
    assert words[0].startswith("opsdrill=")
    assert answer.json()["csrf"] not in cookie


async def test_under_https_the_cookie_is_secure_and_nobody_elses_to_set(api: Api) -> None:
    """[A3.1]"""
    client = api.client()
    answer = await client.post(
        "https://localhost/api/v1/session", json={"token": api.secrets["run"]}
    )
    [cookie] = answer.headers.get_list("set-cookie")
    assert cookie.startswith("__Host-opsdrill=")
    assert "; Secure" in cookie
    assert (await client.get("https://localhost/api/v1/session")).json()["role"] == "run"
    refused(await client.get("http://localhost/api/v1/session"), 401, "a token is needed")


async def test_a_browser_reads_without_and_changes_with_its_csrf_token(api: Api) -> None:
    """[A3.2]"""
    browser, csrf = await api.browser("admin")
    assert (await browser.get("/api/v1/tokens")).status_code == 200
    assert (await browser.get("/api/v1/session")).json()["csrf"] == csrf
    sent = await browser.post("/api/v1/tokens", json=ASKED, headers={"X-CSRF-Token": csrf})
    assert sent.status_code == 201


@pytest.mark.parametrize("wrong", [None, "", "x", "another's"])
@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_a_change_without_the_right_csrf_token_is_refused(
    api: Api, method: str, wrong: str | None
) -> None:
    """[A3.2] Missing, wrong, or that of another session."""
    browser, _ = await api.browser("admin")
    _, others = await api.browser("admin")
    sent = others if wrong == "another's" else wrong
    headers = {} if sent is None else {"X-CSRF-Token": sent}
    path = "/api/v1/tokens" if method == "POST" else "/api/v1/session"
    answer = await browser.request(
        method, path, json=ASKED if method == "POST" else None, headers=headers
    )
    refused(answer, 403, "CSRF token")
    assert len((await browser.get("/api/v1/tokens")).json()["tokens"]) == len(ROLES)


async def test_a_session_of_another_user_does_what_that_one_may(api: Api) -> None:
    """[A1.3, A3.2] The cookie of one with the CSRF token of another is nobody's."""
    reader, csrf = await api.browser("read")
    _, admins = await api.browser("admin")
    headers = {"X-CSRF-Token": csrf}
    refused(await reader.post("/api/v1/tokens", json=ASKED, headers=headers), 403, "role admin")
    headers = {"X-CSRF-Token": admins}
    refused(await reader.delete("/api/v1/session", headers=headers), 403, "CSRF")


async def test_a_made_up_cookie_is_no_session(api: Api) -> None:
    """[A3.1]"""
    for held in ("x", api.secrets["admin"], "a" * 5000):
        client = api.client(cookie=f"opsdrill={held}")
        refused(await client.get("/api/v1/session"), 401, "the session is over")


async def test_a_token_in_the_header_counts_alone(api: Api) -> None:
    """[A3.4] A wrong one is not made good by a cookie, and a right one needs no CSRF token."""
    browser, _ = await api.browser("admin")
    wrong = {"Authorization": "Bearer od_0123456789_x"}
    refused(await browser.get("/api/v1/session", headers=wrong), 401, "no such token")
    right = {"Authorization": f"Bearer {api.secrets['admin']}"}
    answer = await browser.post("/api/v1/tokens", json=ASKED, headers=right)
    assert answer.status_code == 201


async def test_logging_out_ends_the_session(api: Api) -> None:
    """[A3.3]"""
    browser, csrf = await api.browser("edit")
    held = browser.cookies["opsdrill"]
    answer = await browser.delete("/api/v1/session", headers={"X-CSRF-Token": csrf})
    assert answer.status_code == 204
    assert "Max-Age=0" in answer.headers["set-cookie"]
    again = api.client(cookie=f"opsdrill={held}")
    refused(await again.get("/api/v1/session"), 401, "the session is over")


async def test_a_session_does_not_last_for_ever(api: Api) -> None:
    """[A3.3]"""
    browser, _ = await api.browser("edit")
    api.clock.turn(timedelta(hours=12))
    refused(await browser.get("/api/v1/session"), 401, "the session is over")


async def test_logging_out_with_a_token_alone_ends_nothing(api: Api) -> None:
    """[A3.3]"""
    client = api.client("edit")
    assert (await client.delete("/api/v1/session")).status_code == 204
    assert (await client.get("/api/v1/session")).status_code == 200


# guesses


async def guesses(api: Api, number: int) -> list[int]:
    client = api.client()
    return [
        (await client.post("/api/v1/session", json={"token": f"od_guess_{n}"})).status_code
        for n in range(number)
    ]


async def test_who_guesses_has_to_wait(api: Api) -> None:
    """[A4.1] Then even the right one is not looked at."""
    assert await guesses(api, FAILURES + 2) == [401] * FAILURES + [429] * 2
    right = {"token": api.secrets["read"]}
    answer = await api.client().post("/api/v1/session", json=right)
    refused(answer, 429, "too many wrong tokens from this address")
    assert answer.headers["retry-after"] == "60"
    api.clock.turn(timedelta(seconds=60))
    assert (await api.client().post("/api/v1/session", json=right)).status_code == 201


async def test_guesses_in_the_header_count_too(api: Api) -> None:
    """[A4.1]"""
    client = api.client(authorization="Bearer od_0123456789_guess")
    statuses = [(await client.get("/api/v1/session")).status_code for _ in range(FAILURES + 1)]
    assert statuses == [401] * FAILURES + [429]
    refused(await api.client("read").get("/api/v1/session"), 429, "try again in 60 seconds")


async def test_who_was_right_goes_on_while_others_guess(api: Api) -> None:
    """[A4.2] Behind one address there may be many."""
    reader, admin = api.client("read"), api.client("admin")
    assert (await reader.get("/api/v1/session")).status_code == 200
    await guesses(api, FAILURES)
    assert (await reader.get("/api/v1/session")).status_code == 200
    refused(await admin.get("/api/v1/session"), 429, "too many")
    login = {"token": api.secrets["read"]}
    assert (await api.client().post("/api/v1/session", json=login)).status_code == 201


async def test_a_session_goes_on_while_others_guess(api: Api) -> None:
    """[A4.2]"""
    browser, _ = await api.browser("read")
    await guesses(api, FAILURES)
    assert (await browser.get("/api/v1/session")).status_code == 200


async def test_a_token_that_is_over_is_no_guess(api: Api) -> None:
    """[A4.1] A forgotten script does not shut out its neighbours."""
    admin = api.client("admin")
    made = (await admin.post("/api/v1/tokens", json=ASKED)).json()
    await admin.delete(f"/api/v1/tokens/{made['id']}")
    client = api.client(authorization=f"Bearer {made['secret']}")
    for _ in range(FAILURES + 1):
        assert (await client.get("/api/v1/session")).status_code == 401
    assert (await api.client("read").get("/api/v1/session")).status_code == 200


async def test_many_at_once_are_told_apart(api: Api) -> None:
    """[A1.3] Who calls is found out for each request by itself."""
    clients = {role: api.client(role) for role in ROLES}

    async def role_of(role: Role) -> bool:
        told = await clients[role].get("/api/v1/session")
        return bool(told.json()["role"] == role)

    found = await asyncio.gather(*(role_of(role) for role in ROLES for _ in range(20)))
    assert found == [True] * 80
