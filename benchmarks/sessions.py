"""Sessions beside commands and beside asyncssh alone, on sandbox hosts and over OpenSSH's sshd.

    .venv/bin/python benchmarks/sessions.py [--rounds N]

Prints medians in milliseconds of starting `true` and hearing how it ended, and megabytes a second
of 500 MB out of a host, into it, and over SFTP into and out of a sandbox host, with how much the
memory of this process grew. Fails when a session on a sandbox host takes twice as long as a command
or one over SSH three times as long as asyncssh's, or 500 MB take more than 64 MB of memory.

The second part takes root and the Debian packages openssh-server, openssh-client, iproute2,
util-linux, sudo and busybox-static.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import asyncssh

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.integration import sshd

from opsdrill.hosts.conformance.sftp_client import FOR_READING, FOR_WRITING, PART, Client
from opsdrill.hosts.driver import DriverContext, Host
from opsdrill.hosts.drivers.sandbox.driver import SandboxDriver
from opsdrill.hosts.drivers.ssh.driver import SshDriver
from opsdrill.hosts.session import SessionRequest, Terminal
from opsdrill.model.host import Command
from opsdrill.model.scenario import HostSpec

SIZE, AT_ONCE = 500_000_000, 65_536
FILE = 6_250 * PART
MOST_OF_COMMAND, MOST_OF_ASYNCSSH, MOST_GROWN = 2.0, 3.0, 64.0
OUT = f"head -c {SIZE} /dev/zero"
IN = f"head -c {SIZE} >/dev/null"
SPEC = HostSpec(name="web-01")


def grown(before: int) -> float:
    """Megabytes that the peak of this process's memory rose by."""
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


async def session(host: Host, terminal: Terminal | None = None) -> None:
    one = await host.open(SessionRequest("true", terminal=terminal))
    assert (await one.wait()).exit_code == 0
    await one.close()


async def command(host: Host) -> None:
    assert (await host.run(Command(run="true"))).exit_code == 0


async def out(host: Host) -> None:
    one = await host.open(SessionRequest(OUT))
    size = 0
    while data := await one.read("stdout", AT_ONCE):
        size += len(data)
    await one.close()
    assert size == SIZE


async def into(host: Host) -> None:
    one = await host.open(SessionRequest(IN))
    for _ in range(SIZE // AT_ONCE + 1):
        await one.write(bytes(AT_ONCE))
    assert (await one.wait()).exit_code == 0
    await one.close()


async def speed(size: int, work: Callable[[], Awaitable[object]]) -> float:
    """Megabytes a second."""
    begin = time.perf_counter()
    await work()
    return size / 1e6 / (time.perf_counter() - begin)


async def medians(
    rounds: int, ways: dict[str, Callable[[], Awaitable[object]]]
) -> dict[str, float]:
    """Milliseconds of each way, in turns."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            begin = time.perf_counter()
            await way()
            found[name].append((time.perf_counter() - begin) * 1000)
    return {name: statistics.median(times) for name, times in found.items()}


async def sandbox(folder: Path, rounds: int) -> list[str]:
    driver = SandboxDriver(DriverContext(folder, {"size": "300M"}))
    wrong = []
    try:
        async with await driver.provision("bench", [SPEC]) as fleet:
            host = fleet.hosts["web-01"]
            times = await medians(
                rounds,
                {
                    "command": lambda: command(host),
                    "session": lambda: session(host),
                    "session with a terminal": lambda: session(host, Terminal()),
                },
            )
            for name, milliseconds in times.items():
                print(f"sandbox  {name:26} {milliseconds:8.1f} ms")
            if times["session"] > MOST_OF_COMMAND * times["command"]:
                wrong.append("a session on a sandbox host takes too long to start")
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            for name, size, work in (
                ("500 MB out", SIZE, lambda: out(host)),
                ("500 MB in", SIZE, lambda: into(host)),
                ("200 MB in over SFTP", FILE, lambda: put(host)),
                ("200 MB out over SFTP", FILE, lambda: get(host)),
            ):
                print(f"sandbox  {name:26} {await speed(size, work):8.0f} MB/s")
            more = grown(before)
            print(f"sandbox  {'memory':26} {more:8.1f} MB more")
            if more > MOST_GROWN:
                wrong.append("bytes of a sandbox host's sessions pile up here")
    finally:
        await driver.close()
    return wrong


async def put(host: Host) -> None:
    one = await host.open(SessionRequest(files=True))
    client = Client(one)
    await client.begin()
    handle = await client.opened("/srv/file", FOR_WRITING)
    await client.write(handle, (bytes(PART) for _ in range(FILE // PART)))
    await one.close()


async def get(host: Host) -> None:
    one = await host.open(SessionRequest(files=True))
    client = Client(one)
    await client.begin()
    handle = await client.opened("/srv/file", FOR_READING)
    async for _ in client.read(handle, FILE):
        pass
    await one.close()


async def ssh(folder: Path, rounds: int) -> list[str]:
    rig = sshd.Rig(folder)
    machine = await asyncio.to_thread(rig.machine)
    driver = SshDriver(DriverContext(folder, hosts={"web-01": machine.lab()}))
    wrong = []
    try:
        async with await driver.provision("bench", [SPEC]) as fleet:
            host = fleet.hosts["web-01"]
            lab = machine.lab()
            bare = await asyncssh.connect(
                lab.address,
                lab.port,
                username=lab.user,
                client_keys=[lab.key],
                known_hosts=None,
                config=[],
                encryption_algs="^aes128-gcm@openssh.com",
                compression_algs=None,
            )
            async with bare:
                times = await medians(
                    rounds,
                    {
                        "command": lambda: command(host),
                        "session": lambda: session(host),
                        "asyncssh": lambda: bare.run("true"),
                    },
                )
                for name, milliseconds in times.items():
                    print(f"ssh      {name:26} {milliseconds:8.1f} ms")
                before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                for name, work in (
                    ("500 MB out", lambda: out(host)),
                    ("500 MB in", lambda: into(host)),
                    ("500 MB out, asyncssh", lambda: bare_out(bare)),
                    ("500 MB in, asyncssh", lambda: bare_in(bare)),
                ):
                    print(f"ssh      {name:26} {await speed(SIZE, work):8.0f} MB/s")
                print(f"ssh      {'memory':26} {grown(before):8.1f} MB more")
            if times["session"] > MOST_OF_ASYNCSSH * times["asyncssh"]:
                wrong.append("a session over SSH takes too long to start")
    finally:
        await driver.close()
        rig.close()
    return wrong


async def bare_out(bare: asyncssh.SSHClientConnection) -> None:
    process = await bare.create_process(OUT, encoding=None)
    size = 0
    while data := await process.stdout.read(AT_ONCE):
        size += len(data)
    assert size == SIZE


async def bare_in(bare: asyncssh.SSHClientConnection) -> None:
    process = await bare.create_process(IN, encoding=None)
    for _ in range(SIZE // AT_ONCE + 1):
        process.stdin.write(bytes(AT_ONCE))
        await process.stdin.drain()
    await process.wait()


async def main() -> int:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    arguments.add_argument("--rounds", type=int, default=20)
    rounds = arguments.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        wrong = await sandbox(Path(folder) / "sandbox", rounds)
        if reason := sshd.why_not():
            print(f"ssh      not measured: {reason}")
        else:
            (Path(folder) / "ssh").mkdir()
            wrong += await ssh(Path(folder) / "ssh", rounds)
    for line in wrong:
        print(f"too much: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
