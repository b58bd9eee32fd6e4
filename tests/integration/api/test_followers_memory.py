"""Two hundred who follow one run of a server in a process of its own, and what that costs it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from tests.integration.api.server_program import serving
from tests.unit.api.drills import RUNS, small_place

FOLLOWERS = 200
MESSAGES = 800
MOST_MEGABYTES = 80
"""What they may cost together; a queue of its own for each would be several times that."""

SAYING = """
format: opsdrill.script/1
turns: [{tasks: [{host: web-01, description: talk, do: [%s]}]}]
resolve: {resolution: success, reasoning: done}
"""


def resident(pid: int) -> int:
    """Megabytes of memory that a process has."""
    status = Path(f"/proc/{pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) // 1024


async def read_slowly(port: int, asked: bytes, most: list[int], pid: int) -> int:
    """How many events come to one who takes them bit by bit."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=4096)
    writer.write(asked)
    count, rest = 0, b""
    while piece := await reader.read(4096):
        rest += piece
        count += rest.count(b"\nid: ")
        rest = rest[-4:]
        if count % 200 == 0:
            most.append(resident(pid))
            await asyncio.sleep(0.01)
    writer.close()
    return count


async def test_two_hundred_followers_cost_little_more_than_one(tmp_path: Path) -> None:
    place = small_place(tmp_path)
    text = "x" * 1000
    (place.folder / "saying.yaml").write_text(
        SAYING % ", ".join(f"{{say: 'word {number} {text}'}}" for number in range(MESSAGES))
    )
    with (place.folder / "agents.yaml").open("a") as file:
        file.write("  saying: {adapter: script, argument: saying.yaml}\n")
    (place.folder / "opsdrill.toml").write_text('agent-config = "agents.yaml"\n')
    order = {"scenarios": ["drill"], "agents": ["saying"], "lab": "practice"}
    with serving(tmp_path) as (process, address, secret, _):
        headers = {"authorization": f"Bearer {secret}"}
        async with httpx.AsyncClient(base_url=address, headers=headers, timeout=60) as client:
            [run] = [run["id"] for run in (await client.post(RUNS, json=order)).json()["runs"]]
            asked = (
                f"GET {RUNS}/{run}/events HTTP/1.1\r\nHost: localhost\r\n"
                f"Authorization: Bearer {secret}\r\nConnection: close\r\n\r\n"
            ).encode()
            port = urlsplit(address).port or 0
            most: list[int] = []
            first = await read_slowly(port, asked, most, process.pid)
            before = resident(process.pid)
            most.clear()
            found = await asyncio.gather(
                *(read_slowly(port, asked, most, process.pid) for _ in range(FOLLOWERS))
            )
    assert first > MESSAGES
    assert set(found) == {first}
    assert max(most) - before < MOST_MEGABYTES
