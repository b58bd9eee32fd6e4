"""The API over 100,000 runs, each with results and a grade, beside a bare endpoint.

    .venv/bin/python benchmarks/api.py [--runs N] [--only sqlite|postgresql]

`opsdrill serve` is a process of its own; a bare FastAPI application stands on a thread of this one,
at the same kind of server. One client calls both. Prints milliseconds (median, 95th percentile) of
listing, filtering, reading a run, and paging to the end, and the ratio to the bare endpoint; then
200 followers of all runs at once, and how the memory of the server grew over everything.
Fails when a 95th percentile is 50 ms or more.

PostgreSQL is measured twice: right behind the import, when it has counted nothing yet, and after
`VACUUM ANALYZE`.

Measured with 100,000 runs on two cores that others used too, median and 95th percentile:

                                 PostgreSQL, nothing counted    counted       SQLite
    a bare endpoint                              0.7    1.4   0.9    5.6   0.7    1.0
    list                                        11.7   21.2   8.9   14.7   6.8    8.3
    filter                                      17.4   25.8  13.2   33.3  13.8   18.6
    filter by label                             14.2   25.4  12.3   26.7   9.0   12.2
    read a run                                   6.0    8.2   5.2    8.8   5.7    9.9
    read its results                             5.9    9.0   6.2   10.7   3.9    5.8
    page to the end, each of 200                12.6   21.1  11.8   19.6  10.3   29.1

The server had 111 MB, 116 behind the listings, 153 with 200 followers; on SQLite 99, 104, 153.
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


def served(folder: Path, count: int) -> bool:
    with serving(folder) as (process, address, secret, _):
        return asyncio.run(bench(address, secret, process.pid, count))


def on_sqlite(folder: Path, count: int) -> bool:
    os.environ.pop("OPSDRILL_DATABASE_URL", None)
    print(f"sqlite: {count} runs; milliseconds, median and p95", flush=True)
    seeded(folder, count, None)
    return served(folder, count)


def on_postgresql(folder: Path, count: int) -> bool:
    # It counts nothing by itself, as it has not yet right behind an import.
    server = postgres.Server(["autovacuum=off"])
    try:
        url = os.environ["OPSDRILL_DATABASE_URL"] = server.new_database()
        print(f"postgresql: {count} runs, no statistics; milliseconds, median and p95", flush=True)
        seeded(folder, count, url)
        good = served(folder, count)
        server.execute("VACUUM ANALYZE", url.partition("?")[0].rpartition("/")[2])
        print("postgresql with statistics", flush=True)
        return served(folder, count) and good
    finally:
        server.close()


BENCHES = {"sqlite": on_sqlite, "postgresql": on_postgresql}


def main() -> None:
    parser = argparse.ArgumentParser(description="The API over 100,000 runs.")
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--only", choices=sorted(BENCHES))
    asked = parser.parse_args()
    good = True
    for name, run_one in BENCHES.items():
        if asked.only in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                good = run_one(Path(folder), asked.runs) and good
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
