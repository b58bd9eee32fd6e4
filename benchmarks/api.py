"""The API over 100,000 runs, each with results and a grade, beside a bare endpoint.

    .venv/bin/python benchmarks/api.py [--runs N] [--only sqlite|postgresql]

`opsdrill serve` is a process of its own; a bare FastAPI application stands on a thread of this one,
at the same kind of server. One client calls both. Prints milliseconds (median, 95th percentile) of
listing, filtering, reading a run, and paging to the end, and the ratio to the bare endpoint; then
200 followers of all runs at once, and how the memory of the server grew over everything.
Fails when a 95th percentile is 50 ms or more.

Measured with 100,000 runs in SQLite on two cores that others used too, 95th percentile: a bare
endpoint 7 ms, list 26, filter 33, read a run 21, its results 23, each page of 200 to the end 34;
the server had 100 MB, 106 behind the listings, and 150 with 200 followers.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import httpx
from fastapi import FastAPI
from uvicorn import Config, Server

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.store_load import seed, spec
from tests.integration import postgres
from tests.integration.api.server_program import serving
from tests.integration.served import empty_place

from opsdrill.app.settings import Settings
from opsdrill.app.stores import opened_store
from opsdrill.store.sql import SqlStore

TIMES = 200
MOST = 50.0
FOLLOWERS = 200


async def timed(times: int, ask: Callable[[int], Awaitable[object]]) -> list[float]:
    """Milliseconds of each call."""
    found = []
    for number in range(times):
        start = time.perf_counter()
        await ask(number)
        found.append((time.perf_counter() - start) * 1000)
    return found


def p95(figures: list[float]) -> float:
    return sorted(figures)[int(len(figures) * 0.95)]


def megabytes(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def measure(server: tuple[str, str, int], bare: httpx.AsyncClient, count: int) -> bool:
    """Print everything of one store; whether all of it is quick enough."""
    address, secret, pid = server
    headers = {"authorization": f"Bearer {secret}"}
    async with httpx.AsyncClient(
        base_url=f"{address}/api/v1", headers=headers, timeout=60,
        limits=httpx.Limits(max_connections=None),
    ) as client:  # fmt: skip

        async def get(path: str) -> httpx.Response:
            answer = await client.get(path)
            assert answer.status_code == 200, answer.text
            return answer

        ids = [spec(number * 7 % count).id for number in range(TIMES)]
        ways: dict[str, Callable[[int], Awaitable[object]]] = {
            "list": lambda _: get("/runs"),
            "filter": lambda n: get(f"/runs?scenario=scenario-{n % 40}&verdict=passed"),
            "filter by label": lambda n: get(f"/runs?label=night:{n % 90}&state=done"),
            "read a run": lambda n: get(f"/runs/{ids[n % TIMES]}"),
            "read its results": lambda n: get(f"/runs/{ids[n % TIMES]}/results"),
        }
        for way in ways.values():
            await timed(5, way)
        before = megabytes(pid)
        idle = await timed(TIMES, lambda _: bare.get("/"))
        figures = {name: await timed(TIMES, way) for name, way in ways.items()}
        figures["page to the end, each of 200"] = await to_the_end(get)
        print(f"{'a bare endpoint':<32} {statistics.median(idle):8.2f} {p95(idle):8.2f}")
        good = True
        for name, each in figures.items():
            ratio = p95(each) / p95(idle)
            good = good and p95(each) < MOST
            print(f"{name:<32} {statistics.median(each):8.2f} {p95(each):8.2f} {ratio:6.1f}x")
        listing = megabytes(pid)
        seconds = await followed(client)
        print(f"{FOLLOWERS} followers of all runs, until the last was told: {seconds:.2f} s")
        print(
            f"memory: {before:.0f} MB, behind the listings {listing:.0f}, then {megabytes(pid):.0f}"
        )
    return good


async def to_the_end(get: Callable[[str], Awaitable[httpx.Response]]) -> list[float]:
    found, cursor = [], ""
    while True:
        start = time.perf_counter()
        page = (await get(f"/runs?limit=200{cursor}")).content
        found.append((time.perf_counter() - start) * 1000)
        at = page.find(b'"cursor":"', -600)
        if at < 0:
            return found
        cursor = "&cursor=" + page[at + 10 :].partition(b'"')[0].decode()


async def followed(client: httpx.AsyncClient) -> float:
    """Seconds until so many have been told something."""

    async def one() -> None:
        async with client.stream("GET", "/events") as answer:
            assert answer.status_code == 200
            async for _ in answer.aiter_bytes():
                return

    start = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(FOLLOWERS)))
    return time.perf_counter() - start


async def bench(address: str, secret: str, server: int, count: int) -> bool:
    application = FastAPI()

    @application.get("/")
    async def bare_endpoint() -> dict[str, str]:
        return {"status": "alive"}

    bare = Server(Config(application, port=0, log_level="critical", lifespan="off"))
    # Only of a socket that says it is TCP does asyncio send small answers without delay.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        thread = threading.Thread(target=bare.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            good = await measure((address, secret, server), client, count)
        bare.should_exit = True
        await asyncio.to_thread(thread.join)
    return good


def seeded(folder: Path, count: int, url: str | None) -> None:
    settings = Settings.model_validate({"database-url": url} if url else {})
    with opened_store(replace(empty_place(folder), settings=settings)) as store:
        assert isinstance(store, SqlStore)
        seed(store, count)


def main() -> None:
    parser = argparse.ArgumentParser(description="The API over 100,000 runs.")
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--only", choices=["sqlite", "postgresql"])
    asked = parser.parse_args()
    good = True
    for name in ("sqlite", "postgresql"):
        if asked.only not in (None, name):
            continue
        print(f"{name}: {asked.runs} runs; milliseconds, median and p95", flush=True)
        database = postgres.Server() if name == "postgresql" else None
        try:
            os.environ.pop("OPSDRILL_DATABASE_URL", None)
            if database is not None:
                os.environ["OPSDRILL_DATABASE_URL"] = database.new_database()
            with tempfile.TemporaryDirectory() as folder:
                seeded(Path(folder), asked.runs, os.environ.get("OPSDRILL_DATABASE_URL"))
                with serving(Path(folder)) as (process, address, secret, _):
                    one = asyncio.run(bench(address, secret, process.pid, asked.runs))
                good = good and one
        finally:
            if database is not None:
                database.close()
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
