"""What only a real server shows: slow and greedy clients, proxies, the end."""

from __future__ import annotations

import asyncio
import json
import re
import resource
import socket
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from tests.integration.served import HANGS, Served, served, to_the_end

from opsdrill.api import connection, limits, serving
from opsdrill.api.application import make_application
from opsdrill.api.attempts import FAILURES
from opsdrill.api.service import Service
from opsdrill.api.serving import Serving
from opsdrill.errors import UsageError

GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path) as found:
        yield found


async def test_an_answer_names_no_server(server: Served) -> None:
    """[A6.2]"""
    said = await server.said(GET + b"Connection: close\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 200 ")
    assert b"\r\nserver:" not in said.lower()


@pytest.mark.parametrize(
    "content",
    [b"GARBAGE\r\n\r\n", b"GET / HTTP/1.1\r\nHo st: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
     GET + b"X: " + b"x" * 70_000, GET + b"Content-Length: x\r\n\r\n",
     b"GET /\r\n\r\n evil HTTP/1.1\r\n\r\n"],
)  # fmt: skip
async def test_what_is_no_http_is_told_in_the_shape_of_all_errors(
    server: Served, content: bytes
) -> None:
    """[A6.1, A6.2] A head that is too large, and TLS where none is, too."""
    head, _, body = (await server.said(content)).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: application/problem+json" in head
    assert b"x-content-type-options: nosniff" in head
    told = json.loads(body)
    assert (told["status"], told["type"]) == (400, "urn:opsdrill:problem:bad-request")


async def test_a_body_has_one_end(server: Served) -> None:
    """[A5.3] Of two that differ a proxy may have seen the other: nothing behind it is a request."""
    said = await server.said(
        b"POST /api/v1/session HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + GET + b"\r\n"
    )
    assert said.startswith(b"HTTP/1.1 400 ")
    assert said.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("content", [b"", b"GET /hea", GET, GET + b"X: y\r\n"])
async def test_a_head_that_does_not_come_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    """[A5.5] Nor is a connection kept that never asks for anything."""
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.2)
    async with served(tmp_path) as server:
        assert await server.said(content) == b""


async def test_a_head_that_comes_in_drops_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[A5.5] Every drop is not a new beginning; nor is it after an answer."""
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.3)
    async with served(tmp_path) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(GET + b"\r\n")
        assert b"200" in await reader.readline()
        reading = asyncio.create_task(to_the_end(reader))
        for _ in range(int(HANGS / 0.05)):
            writer.write(b"G" if not reading.done() else b"")
            if reading.done():
                break
            await asyncio.sleep(0.05)
        assert reading.done()
        writer.close()


async def test_a_body_that_comes_in_drops_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[A5.5]"""
    monkeypatch.setattr(limits, "BODY_SECONDS", 0.3)
    async with served(tmp_path) as server:
        head = (
            "POST /api/v1/tokens HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {server.secret}\r\nContent-Length: 1000\r\n\r\n{{"
        )
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(head.encode())
        reading = asyncio.create_task(to_the_end(reader))
        while not reading.done():
            writer.write(b" ")
            await asyncio.sleep(0.02)
        assert reading.result().startswith(b"HTTP/1.1 408 ")
        writer.close()


async def test_who_takes_nothing_of_an_answer_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[A5.5] What was on its way still comes, and then no more of a stream without an end."""
    monkeypatch.setattr(connection, "STALLED_SECONDS", 0.2)

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 100_000

    async with served(tmp_path, maker=partial(with_stream, endless)) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1000)
        writer.write(b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await asyncio.sleep(1.0)
        assert (await to_the_end(reader)).startswith(b"HTTP/1.1 200 ")
        writer.close()


def with_stream(content: object, service: Service) -> FastAPI:
    """The application, with a stream that does not end by itself."""
    application = make_application(service)

    @application.get("/stream")
    async def stream() -> StreamingResponse:
        return StreamingResponse(content())  # type: ignore[operator]

    return application


async def test_who_only_holds_connections_keeps_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[A5.6] The oldest of those that never asked for anything goes first."""
    monkeypatch.setattr(connection, "CONNECTIONS", 3)
    monkeypatch.setattr(connection, "ROOM", 1)
    async with served(tmp_path) as server:
        pairs = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(3)]
        (asked, writer), *silent = pairs
        writer.write(GET + b"\r\n")
        assert b"200" in await asked.readline()
        for reader, _ in silent:
            assert b" 200 " in await server.said(GET + b"Connection: close\r\n\r\n")
            assert await to_the_end(reader) == b""
            pairs.append(await asyncio.open_connection("127.0.0.1", server.port))
        writer.write(GET + b"Connection: close\r\n\r\n")
        assert (await to_the_end(asked)).count(b" 200 ") == 1
        for _, each in pairs:
            each.close()


async def test_more_connections_than_are_taken_are_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[A5.6] Those that work go on, and when one leaves another may come."""
    monkeypatch.setattr(connection, "CONNECTIONS", 2)

    async def slow() -> AsyncIterator[bytes]:
        yield b"x"
        await asyncio.sleep(HANGS)

    async with served(tmp_path, maker=partial(with_stream, slow)) as server:
        pairs = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(2)]
        for reader, writer in pairs:
            writer.write(b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"200" in await reader.readline()
        assert await server.said(GET + b"Connection: close\r\n\r\n") == b""
        for _, writer in pairs:
            writer.close()
            await writer.wait_closed()
        async with asyncio.timeout(HANGS):
            while not await server.said(GET + b"Connection: close\r\n\r\n"):
                await asyncio.sleep(0.02)


def test_connections_leave_files_for_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """[A5.6]"""
    for files, most in ((1024, 512), (65536, 2000), (resource.RLIM_INFINITY, 2000)):
        monkeypatch.setattr(resource, "getrlimit", lambda _kind, files=files: (files, files))
        assert connection.most_connections() == most


async def guesses(server: Served, client: httpx.AsyncClient, address: str) -> list[int]:
    headers = {"X-Forwarded-For": address, "X-Forwarded-Proto": "https"}
    url = f"{server.address}/api/v1/session"
    return [
        (await client.post(url, json={"token": "x"}, headers=headers)).status_code
        for _ in range(FAILURES + 1)
    ]


async def test_nobody_says_for_himself_where_he_comes_from(server: Served) -> None:
    """[A4.3] And so does not get around the limit, nor makes the connection a safe one."""
    async with httpx.AsyncClient() as client:
        assert (await guesses(server, client, "192.0.2.1"))[-1] == 429
        assert (await guesses(server, client, "192.0.2.2")) == [429] * (FAILURES + 1)


async def test_a_known_proxy_says_where_its_clients_come_from(tmp_path: Path) -> None:
    """[A3.1, A4.3]"""
    asked = partial(Serving, proxies=["127.0.0.1"])
    async with served(tmp_path, asked=asked) as server, httpx.AsyncClient() as client:
        assert (await guesses(server, client, "192.0.2.1"))[-1] == 429
        assert (await guesses(server, client, "192.0.2.2"))[0] == 401
        url = f"{server.address}/api/v1/session"
        headers = {"X-Forwarded-For": "192.0.2.3", "X-Forwarded-Proto": "https"}
        answer = await client.post(url, json={"token": server.secret}, headers=headers)
        assert answer.headers["set-cookie"].startswith("__Host-opsdrill=")
        assert "Secure" in answer.headers["set-cookie"]


async def test_https_can_be_said_of_a_proxy_that_does_not(tmp_path: Path) -> None:
    """[A3.1]"""
    asked = partial(Serving, https=True)
    async with served(tmp_path, asked=asked) as server, httpx.AsyncClient() as client:
        url = f"{server.address}/api/v1/session"
        answer = await client.post(url, json={"token": server.secret})
        assert "Secure" in answer.headers["set-cookie"]


async def test_a_name_can_be_added(tmp_path: Path) -> None:
    """[A5.1]"""
    asked = partial(Serving, host_names=["Drills.Example", "[2001:db8::1]"])
    async with served(tmp_path, asked=asked) as server, httpx.AsyncClient() as client:
        for host, status in (
            ("drills.example:443", 200), ("[2001:db8::1]", 200), ("a.example", 421),
        ):  # fmt: skip
            answer = await client.get(f"{server.address}/health", headers={"Host": host})
            assert answer.status_code == status


def test_small_answers_are_not_held_back() -> None:
    """asyncio turns that off for sockets alone that are known to be TCP: 40 ms an answer."""
    with serving._bound("127.0.0.1:0") as listening:
        assert listening.proto == socket.IPPROTO_TCP


async def test_the_end_waits_for_no_follower(tmp_path: Path) -> None:
    """[A8.1] One who follows something that does not end is cut off."""

    async def quiet() -> AsyncIterator[bytes]:
        yield b"hello"
        await asyncio.Event().wait()

    async with served(tmp_path, maker=partial(with_stream, quiet)) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readuntil(b"hello")
        server.brake.pull()
        await to_the_end(reader)
        writer.close()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (Serving("8420"), "'8420' is no address to listen at"),
        (Serving(":8420"), "no address to listen at"),
        (Serving("127.0.0.1:99999"), "no address to listen at"),
        (Serving("::1:8420"), "no address to listen at"),
        (Serving("nowhere.invalid:0"), "'nowhere.invalid' is no address of this machine"),
        (Serving("192.0.2.1:0"), "nothing can listen at 192.0.2.1:0"),
        (Serving("127.0.0.1:0", host_names=["http://x"]), "'http://x' is no host name"),
        (Serving("127.0.0.1:0", host_names=["*"]), "'*' is no host name"),
        (Serving("127.0.0.1:0", host_names=["a:80"]), "'a:80' is no host name"),
        (Serving("127.0.0.1:0", proxies=["*"]), "'*' is no address of a proxy"),
        (Serving("127.0.0.1:0", proxies=["proxy.example"]), "is no address of a proxy"),
    ],
)
async def test_what_cannot_be_served_is_told_in_a_sentence(
    tmp_path: Path, asked: Serving, words: str
) -> None:
    """[A5.1, A4.3]"""
    with pytest.raises(UsageError, match=re.escape(words)):
        async with served(tmp_path, asked=lambda _address: asked):
            pass
