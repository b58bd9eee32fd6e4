"""asyncssh alone: one connection and ten channels a host, each check a channel's command."""

from __future__ import annotations

import asyncio
import time

import asyncssh
from benchmarks.hosts_peers.task import Check, Task, main

CHANNELS = 10
"""What sshd allows on a connection (MaxSessions)."""


async def on_host(address: str, task: Task) -> int:
    key = asyncssh.import_public_key(task.host_key)
    async with asyncssh.connect(
        address, username="root", client_keys=[task.key], known_hosts=([key], [], []), config=[]
    ) as connection:
        room = asyncio.Semaphore(CHANNELS)

        async def one(check: Check) -> bool:
            async with room:
                answer = await connection.run(check.run)
            return check.holds(answer.exit_status, str(answer.stdout))

        return sum(await asyncio.gather(*map(one, task.checks)))


async def work(task: Task) -> tuple[int, float]:
    started = time.perf_counter()
    right = await asyncio.gather(*(on_host(address, task) for address in task.hosts.values()))
    return sum(right), time.perf_counter() - started


if __name__ == "__main__":
    main(lambda task: asyncio.run(work(task)))
