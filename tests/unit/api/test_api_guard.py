"""What stands before every route: hosts, origins, headers, the log."""

from __future__ import annotations

import logging
import re

import httpx
import pytest
from tests.unit.api.conftest import Api
from tests.unit.api.test_api_entry import ASKED, refused

from opsdrill.api import guard

HEADERS = {
    "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8420", "127.0.0.1:80", "[::1]", "[::1]:8420", "localhost."]
)
async def test_it_is_called_by_its_names(api: Api, host: str) -> None:
    """[A5.1] With any port, in any letters."""
    assert (await api.client(host=host).get("/health")).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "127.0.0.2", "::1", "[::2]", "localhost:x", "*",
     "localhost, evil.example", "evil.example:80@localhost"],
)  # fmt: skip
async def test_it_is_called_by_no_other_name(api: Api, host: str) -> None:
    """[A5.1] A name that somebody made to lead here (DNS rebinding) opens nothing."""
    for path in ("/health", "/api/v1/session"):
        answer = await api.client("admin", host=host).get(path)
        refused(answer, 421, "this server is not called")


async def test_a_head_has_a_limit(api: Api) -> None:
    """[A5.3] Whatever part of it is large."""
    client, large = api.client("read"), "x" * guard.HEAD_BYTES
    for path, more in ((f"/{large}", {}), (f"/health?{large}", {}), ("/health", {"x": large})):
        refused(await client.get(path, headers=more), 400, f"at most {guard.HEAD_BYTES} bytes")
    assert (await client.get("/health", headers={"x": "x" * 30_000})).status_code == 200


async def test_a_request_names_one_host(api: Api) -> None:
    """[A5.1]"""
    two = [(b"host", b"localhost"), (b"host", b"evil.example")]
    refused(await api.client().get("/health", headers=two), 400, "must name one host")
    refused(await api.client(host="").get("/health"), 400, "must name one host")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:9000"},
        {"Origin": "http://localhost.evil.example"},
        {"Origin": "http://evil.example@localhost:1"},
        {"Origin": "file://localhost"},
        {"Origin": "http://localhost:x"},
        {"Origin": ""},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost"},
    ],
)
async def test_a_change_from_another_site_is_refused(api: Api, headers: dict[str, str]) -> None:
    """[A5.2] Even with the CSRF token, and the login too."""
    browser, csrf = await api.browser("admin")
    sent = await browser.post(
        "/api/v1/tokens", json=ASKED, headers={**headers, "X-CSRF-Token": csrf}
    )
    refused(sent, 403, "of another site")
    login = {"token": api.secrets["admin"]}
    refused(await api.client().post("/api/v1/session", json=login, headers=headers), 403, "site")


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost", "http://localhost"),
        ("localhost:80", "http://localhost"),
        ("localhost:8420", "http://localhost:8420"),
        ("localhost", "https://localhost:443"),
        ("[::1]:8420", "http://[::1]:8420"),
    ],
)
async def test_a_change_from_its_own_pages_is_done(api: Api, host: str, origin: str) -> None:
    """[A5.2]"""
    client = api.client("admin", host=host, origin=origin, sec_fetch_site="same-origin")
    assert (await client.post("/api/v1/tokens", json=ASKED)).status_code == 201


async def test_no_other_site_may_read_answers(api: Api) -> None:
    """[A6.5]"""
    client = api.client("admin", origin="https://evil.example")
    preflight = await client.options(
        "/api/v1/tokens", headers={"Access-Control-Request-Method": "POST"}
    )
    refused(preflight, 405, "OPTIONS /api/v1/tokens is not possible")
    for answer in (preflight, await client.get("/api/v1/tokens")):
        assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/health"), ("GET", "/ready"), ("GET", "/metrics"), ("GET", "/nothing"),
        ("GET", "/api/v1/openapi.json"), ("GET", "/api/v1/tokens"), ("PUT", "/api/v1/tokens"),
        ("POST", "/api/v1/session"), ("DELETE", "/api/v1/session"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("known", [True, False])
async def test_every_answer_has_the_headers(api: Api, method: str, path: str, known: bool) -> None:
    """[A6.2]"""
    answer = await api.client("admin" if known else None).request(method, path)
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert re.fullmatch("[0-9a-f]{16}", answer.headers["x-request-id"])
    assert "server" not in answer.headers


async def test_each_request_has_an_id_that_the_caller_does_not_choose(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    """[A6.4] It is in the answer, in the problem and in the log."""
    caplog.set_level(logging.INFO, logger=guard.__name__)
    client = api.client(x_request_id="forged")
    one, two = [await client.get("/api/v1/session") for _ in range(2)]
    id = one.headers["x-request-id"]
    assert one.json()["instance"] == f"urn:opsdrill:request:{id}"
    assert two.headers["x-request-id"] != id
    assert caplog.messages[-2].startswith(f"{id} 127.0.0.1 - GET /api/v1/session 401 ")
    assert "forged" not in caplog.text


async def test_the_log_has_no_secret_no_query_and_no_control_characters(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    """[A6.4]"""
    caplog.set_level(logging.DEBUG)
    client = api.client("admin")
    await client.get("/api/v1/%1b%5b31m%0d%0aforged?token=" + api.secrets["admin"])
    await client.get("/" + "x" * 5000)
    browser, csrf = await api.browser("admin")
    await browser.post("/api/v1/tokens", json=ASKED, headers={"X-CSRF-Token": csrf})
    ours = [record.getMessage() for record in caplog.records if record.name == guard.__name__]
    assert len(ours) == 4
    for line in ours:
        assert line.isprintable()
        assert len(line) < 400
    text = "\n".join(ours)
    for secret in (api.secrets["admin"], csrf, browser.cookies["opsdrill"], "?"):
        assert secret not in text
    assert "/api/v1/%1b%5b31m%0d%0aforged 404" in text


async def test_too_many_at_once_are_refused(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """[A5.6]"""
    monkeypatch.setattr(guard, "AT_ONCE", 0)
    answer = await api.client().get("/health")
    refused(answer, 503, "too many requests at once")
    assert answer.headers["retry-after"] == "1"


async def test_a_header_cannot_be_smuggled_into_an_answer(api: Api) -> None:
    """[A6.2] Whatever a caller sends comes back in a body, if at all."""
    for path in ("/api/v1/tokens/%0d%0aset-cookie:%20a=b", "/%0d%0aset-cookie:%20a=b"):
        answer: httpx.Response = await api.client("admin").get(path)
        assert answer.status_code == 404
        assert "set-cookie" not in answer.headers
