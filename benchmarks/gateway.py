"""What the recording gateway costs: commands through it beside asyncssh straight to such a host.

    .venv/bin/python benchmarks/gateway.py [--rounds N] [--commands N]

Sandbox hosts behind the gateway, and the same kind of host behind a bare asyncssh server, whose
process starts a session on the host and passes the bytes on: what nobody can do without. In turns,
in one process each way: commands one after the other over one connection, a connection for each
command, many at once, and one long stream. Every answer is compared with the right one.

Prints medians in milliseconds (the stream: MB a second) and their ratios. Fails if a command
through the gateway takes more than 1.5 times as long as through the bare server.

Takes kernel namespaces, as the sandbox does.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import asyncssh

from opsdrill.agents.gateway import Gateway
from opsdrill.evidence.recorder import Recorder
from opsdrill.hosts.driver import DRIVERS, DriverContext, Host
from opsdrill.hosts.session import Session, SessionRequest, Stream
from opsdrill.model.event import JobCreated, JobEvent
from opsdrill.model.scenario import HostSpec
from opsdrill.model.ticket import Ticket

MOST = 1.5
AT_ONCE = 20
STREAM = 100_000_000
Connect = Callable[[], Awaitable[asyncssh.SSHClientConnection]]


class Nothing:
    """A sink that keeps nothing, so that no store is measured."""

    def append(self, seq: int, event: JobEvent) -> None:
        pass


def bare(host: Host) -> Callable[[asyncssh.SSHServerProcess[bytes]], Awaitable[None]]:
    """A server's process that passes a command to a host, and that is all."""

    async def serve(process: asyncssh.SSHServerProcess[bytes]) -> None:
        session = await host.open(SessionRequest(command=process.command))

        async def put_out(stream: Stream, to: asyncssh.SSHWriter[bytes]) -> None:
            while data := await session.read(stream):
                to.write(data)
                await to.drain()

        feeding = asyncio.ensure_future(_feed(process, session))
        with suppress(BrokenPipeError):
            await asyncio.gather(
                put_out("stdout", process.stdout), put_out("stderr", process.stderr)
            )
        end = await session.wait()
        feeding.cancel()
        await session.close()
        process.exit(end.exit_code or 0)

    return serve


async def _feed(process: asyncssh.SSHServerProcess[bytes], session: Session) -> None:
    with suppress(asyncssh.Error):
        while data := await process.stdin.read(65536):
            await session.write(data)
    await session.write_eof()


async def one_after_the_other(connect: Connect, commands: int) -> float:
    async with await connect() as connection:
        started = time.perf_counter()
        for number in range(commands):
            assert (await connection.run(f"echo {number}")).stdout == f"{number}\n"
        taken = time.perf_counter() - started
    return taken / commands * 1000


async def each_connected(connect: Connect, commands: int) -> float:
    started = time.perf_counter()
    for number in range(commands):
        async with await connect() as connection:
            assert (await connection.run(f"echo {number}")).stdout == f"{number}\n"
    return (time.perf_counter() - started) / commands * 1000


async def at_once(connect: Connect, commands: int) -> float:
    async with await connect() as connection:
        started = time.perf_counter()

        async def one(number: int) -> None:
            for _ in range(max(1, commands // AT_ONCE)):
                assert (await connection.run(f"echo {number}")).stdout == f"{number}\n"

        await asyncio.gather(*(one(number) for number in range(AT_ONCE)))
        done = max(1, commands // AT_ONCE) * AT_ONCE
        taken = time.perf_counter() - started
    return taken / done * 1000


async def stream(connect: Connect, commands: int) -> float:
    del commands
    async with await connect() as connection:
        started = time.perf_counter()
        ran = await connection.run(f"head -c {STREAM} /dev/zero", encoding=None)
        assert ran.stdout is not None and len(ran.stdout) == STREAM
        taken = time.perf_counter() - started
    return taken * 1000


WAYS = {
    "one after the other": one_after_the_other,
    "a connection each": each_connected,
    f"{AT_ONCE} at once": at_once,
    "100 MB of output": stream,
}


async def measure(rounds: int, commands: int, folder: Path) -> bool:
    driver = DRIVERS.get("sandbox")(DriverContext(folder))
    good = True
    try:
        async with await driver.provision("bench", [HostSpec(name="web-01")]) as fleet:
            recorder = Recorder(Nothing(), Ticket(title="T", body="B"))
            recorder.record(JobCreated(job="job-1"))
            key = asyncssh.generate_private_key("ssh-ed25519")
            authorized = asyncssh.import_authorized_keys(key.export_public_key().decode())
            plain = await asyncssh.listen(
                "127.0.0.1", 0, server_host_keys=[key], authorized_client_keys=authorized,
                process_factory=bare(fleet.hosts["web-01"]), encoding=None, config=None,
            )  # fmt: skip
            async with plain, Gateway(fleet.hosts, recorder) as gateway:
                ours = asyncssh.import_private_key(gateway.private_key)
                ends: dict[str, Connect] = {
                    "bare": connector(plain.get_port(), key),
                    "gateway": connector(gateway.ports["web-01"], ours),
                }
                print(f"{'':22}{'bare':>10}{'gateway':>10}{'ratio':>8}")
                for name, way in WAYS.items():
                    taken: dict[str, list[float]] = {end: [] for end in ends}
                    for _ in range(rounds):
                        for end, connect in ends.items():
                            taken[end].append(await way(connect, commands))
                    first, second = (statistics.median(times) for times in taken.values())
                    print(f"{name:22}{first:8.2f}ms{second:8.2f}ms{second / first:8.2f}")
                    good = good and second <= MOST * first
    finally:
        await driver.close()
    return good


def connector(port: int, key: asyncssh.SSHKey) -> Connect:
    async def connect() -> asyncssh.SSHClientConnection:
        return await asyncssh.connect(
            "127.0.0.1", port, username="root", client_keys=[key], known_hosts=None,
            config=None, agent_path=None,
        )  # fmt: skip

    return connect


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--commands", type=int, default=100)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        good = asyncio.run(measure(chosen.rounds, chosen.commands, Path(folder)))
    if not good:
        print(f"the gateway takes more than {MOST} times as long", file=sys.stderr)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
