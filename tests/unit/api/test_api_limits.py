"""How large and how deep a body may be, before anything is made of it."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, Request
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.api.conftest import Api
from tests.unit.api.test_api_entry import ASKED, refused

from opsdrill.api import guard, limits
from opsdrill.api.entry import needs
from opsdrill.api.limits import BODY_BYTES, DEPTH, STRANGER_BYTES, too_deep
from opsdrill.app.access import Access, Role
from opsdrill.errors import StoreError

JSON = {"content-type": "application/json"}


def depth(value: object) -> int:
    """As it is written down: how many lists and objects stand in each other."""
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth, value), default=0)
    return 0


def nested(levels: int, inner: Any = 1) -> Any:
    for level in range(levels):
        inner = [inner] if level % 2 else {"a": inner, "b": [[], {}]}
    return inner


TEXTS = st.text(alphabet='[]{}"\\a\n€', max_size=12)
TREES = st.recursive(
    st.none() | TEXTS | st.integers(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=40,
)


@given(TREES, st.integers(0, DEPTH + 8), st.booleans())
def test_the_depth_is_that_of_the_document(tree: object, more: int, escaped: bool) -> None:
    """[A5.4] Whatever brackets stand in its texts."""
    document = nested(more, tree)
    text = json.dumps(document, ensure_ascii=escaped)
    assert too_deep(text.encode()) == (depth(document) > DEPTH)


BROKEN = st.lists(st.sampled_from([b"[", b"{", b"]", b"}", b'"', b"\\", b"a"])).map(b"".join)


@given(st.binary(max_size=300) | BROKEN)
def test_of_what_is_no_json_something_is_said_too(content: bytes) -> None:
    """[A5.4]"""
    assert too_deep(content * 50) in (True, False)


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 65 + b"]" * 65])
async def test_a_body_that_is_nested_too_deep_is_refused(api: Api, body: bytes) -> None:
    """[A5.4]"""
    for path in ("/api/v1/tokens",):
        answer = await api.client("admin").post(path, content=body, headers=JSON)
        refused(answer, 422, "nested too deep; at most 64")
        assert answer.json()["errors"] == [
            {"path": "", "message": "is nested too deep", "severity": "error"}
        ]


async def test_a_body_that_is_no_json_is_told_so(api: Api) -> None:
    """[A6.1]"""
    for body in (b"{", b"", b"\xff", b'{"a": NaN', b"[1]", b'"a"', b"1" * 5000):
        answer = await api.client("admin").post("/api/v1/tokens", content=body, headers=JSON)
        assert answer.status_code == 422, (body, answer.text)
        assert answer.json()["errors"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"name": "a", "role": "admin", "role": "read"}', "has the key 'role' twice"),
        (b'{"name": "a", "role": "read", "expires_in_days": NaN}', "NaN"),
        (b'{"name": "a",\n "role": read}', "2:10"),
        (json.dumps({**ASKED, "name": "x" * 20_000})[:-1].encode() + b', "name": "y"}', "twice"),
    ],
)
async def test_json_is_read_to_the_letter(api: Api, body: bytes, words: str) -> None:
    """[A5.4, A6.1] Of a key that stands twice a proxy may have read the other one."""
    answer = await api.client("admin").post("/api/v1/tokens", content=body, headers=JSON)
    refused(answer, 422, words)
    assert answer.json()["errors"]


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded"])
async def test_json_that_is_not_said_to_be_json_is_told_what_to_say(
    api: Api, kind: str | None
) -> None:
    """[A6.1] As curl sends it where it is told nothing."""
    headers = {} if kind is None else {"content-type": kind}
    body = json.dumps(ASKED).encode()
    answer = await api.client("admin").post("/api/v1/tokens", content=body, headers=headers)
    refused(answer, 422, "the body is not said to be JSON; send it with `Content-Type: appl")


@pytest.mark.parametrize("path", ["/api/v1/tokens", "/api/v1/records", "/api/v1/scenarios"])
async def test_a_compressed_body_is_refused(api: Api, path: str) -> None:
    """[A5.7] Rather than taken for what it is not."""
    headers = {**JSON, "content-encoding": "gzip"}
    answer = await api.client("admin").post(path, content=gzip.compress(b"{}"), headers=headers)
    refused(answer, 415, "a compressed body is not understood")


async def test_a_large_body_is_refused(api: Api) -> None:
    """[A5.3] By what its head says, or when so much has come."""

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(BODY_BYTES // 100_000 + 1):
            sent.append(1)
            yield b"x" * 100_000

    sent: list[int] = []
    client = api.client("admin")
    long = {**JSON, "content-length": str(BODY_BYTES + 1)}
    refused(await client.post("/api/v1/tokens", content=pieces(), headers=long), 413, "too large")
    assert not sent  # nobody waits for what is not wanted
    whole = await client.post("/api/v1/tokens", content=b"x" * (BODY_BYTES + 1), headers=JSON)
    refused(whole, 413, f"at most {BODY_BYTES} bytes")
    refused(await client.post("/api/v1/tokens", content=pieces(), headers=JSON), 413, "too large")
    assert sent


async def test_a_body_of_just_the_limit_is_read(api: Api) -> None:
    """[A5.3]"""
    body = json.dumps(ASKED).encode().ljust(BODY_BYTES)
    answer = await api.client("admin").post("/api/v1/tokens", content=body, headers=JSON)
    assert answer.status_code == 201


async def test_nothing_is_read_of_who_is_not_known(api: Api) -> None:
    """[A1.4] Not even to say that it is broken."""
    read: list[int] = []

    async def pieces() -> AsyncIterator[bytes]:
        read.append(1)
        yield b"{"

    answer = await api.client().post("/api/v1/tokens", content=pieces(), headers=JSON)
    refused(answer, 401, "a token is needed")
    assert read == []


async def test_nothing_is_read_of_who_may_not(api: Api) -> None:
    """[A1.3, A1.4] A role that is too low is told so first, not that the body is broken."""
    read: list[int] = []

    async def pieces() -> AsyncIterator[bytes]:
        read.append(1)
        yield b"{"

    answer = await api.client("edit").post("/api/v1/tokens", content=pieces(), headers=JSON)
    refused(answer, 403, "takes the role admin")
    assert read == []


@pytest.mark.parametrize(
    ("error", "status"), [(StoreError("the disk is full"), 503), (KeyError("x"), 500)]
)
async def test_that_it_cannot_be_known_who_calls_is_no_mistake_of_the_body(
    api: Api, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    """[A6.1] The framework would say that the body is broken."""

    def fail(secret: str) -> None:
        raise error

    monkeypatch.setattr(Access, "by_token", lambda _access, secret: fail(secret))
    answer = await api.client("admin").post("/api/v1/tokens", json=ASKED)
    assert answer.status_code == status
    assert answer.json()["status"] == status


async def test_a_login_is_short(api: Api) -> None:
    """[A5.3]"""
    body = json.dumps({"token": "x" * STRANGER_BYTES}).encode()
    answer = await api.client().post("/api/v1/session", content=body, headers=JSON)
    refused(answer, 413, f"at most {STRANGER_BYTES} bytes")


async def test_bodies_that_do_not_come_keep_nobody_out(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[A5.5] The one that is waited for longest gives way; those who are known wait elsewhere."""
    monkeypatch.setattr(guard, "STRANGERS", 2)
    begun: list[int] = []
    end = asyncio.Event()

    async def silent(number: int) -> AsyncIterator[bytes]:
        begun.append(number)
        await end.wait()
        yield json.dumps({"token": api.secrets["read"]}).encode()

    def send(number: int, role: Role | None, path: str) -> asyncio.Task[httpx.Response]:
        call = api.client(role).post(path, content=silent(number), headers=JSON)
        return asyncio.create_task(call)

    known = send(0, "admin", "/api/v1/tokens")
    waiting = [send(number, None, "/api/v1/session") for number in (1, 2)]
    while len(begun) < 3:
        await asyncio.sleep(0.01)
    for first in list(waiting):
        waiting.append(send(3, None, "/api/v1/session"))
        refused(await first, 408, "did not come in time")
    login = {"token": api.secrets["admin"]}
    assert (await api.client().post("/api/v1/session", json=login)).status_code == 201
    refused(await waiting[2], 408, "did not come in time")
    end.set()
    assert (await waiting[3]).status_code == 201
    assert (await known).status_code == 422


@pytest.fixture
def uploads(api: Api) -> Api:
    """With a route that takes 3 MB, of any kind."""
    router = APIRouter()

    @router.post("/upload", **needs("run", upload=3_000_000))
    async def upload(request: Request) -> dict[str, int]:
        return {"bytes": sum([len(piece) async for piece in request.stream()])}

    api.application.include_router(router)
    return api


async def test_an_upload_has_a_limit_of_its_own(uploads: Api) -> None:
    """[A5.3] And is not looked into here, be it JSON."""
    client = uploads.client("run")
    deep = b"[" * 3_000_000
    answer = await client.post("/upload", content=deep, headers=JSON)
    assert answer.json() == {"bytes": 3_000_000}
    refused(await client.post("/upload", content=deep + b"x"), 413, "at most 3000000 bytes")


async def test_an_upload_of_who_may_not_is_not_read(uploads: Api) -> None:
    """[A1.4]"""
    body = b"x" * 4_000_000
    refused(await uploads.client("read").post("/upload", content=body), 403, "the role run")
    refused(await uploads.client().post("/upload", content=body), 401, "a token is needed")


async def test_a_body_that_does_not_come_is_not_waited_for(
    uploads: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[A5.5]"""
    monkeypatch.setattr(limits, "BODY_SECONDS", 0.05)

    async def never() -> dict[str, Any]:
        await asyncio.sleep(60)
        raise AssertionError

    for path in ("/upload", "/api/v1/tokens"):
        sent: list[dict[str, Any]] = []

        async def send(message: dict[str, Any], sent: list[dict[str, Any]] = sent) -> None:
            sent.append(message)

        scope = {
            "type": "http", "method": "POST", "path": path, "raw_path": path.encode(),
            "query_string": b"", "scheme": "http", "http_version": "1.1", "root_path": "",
            "server": ("localhost", 80), "client": ("192.0.2.1", 5), "headers": [
                (b"host", b"localhost"), (b"content-length", b"5"),
                (b"content-type", b"application/json"),
                (b"authorization", f"Bearer {uploads.secrets['admin']}".encode()),
            ],
        }  # fmt: skip
        await uploads.application(scope, never, send)  # type: ignore[arg-type]
        assert sent[0]["status"] == 408
        assert b"did not come in time" in sent[1]["body"] or b"too slowly" in sent[1]["body"]


async def test_an_upload_that_drips_is_not_waited_for(
    uploads: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[A5.5] One that comes steadily may take as long as it wants."""
    monkeypatch.setattr(limits, "BODY_SECONDS", 0.2)
    monkeypatch.setattr(limits, "UPLOAD_RATE", 1000)

    async def pieces(size: int) -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b"x" * size
            await asyncio.sleep(0.02)

    client = uploads.client("run")
    refused(await client.post("/upload", content=pieces(1)), 408, "comes too slowly")
    assert (await client.post("/upload", content=pieces(1000))).json() == {"bytes": 40_000}
