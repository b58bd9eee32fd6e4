"""Sessions of sandbox hosts: nothing that holds for commands is lost in them."""

from __future__ import annotations

import asyncio
import resource
import struct
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from opsdrill.errors import HostError, HostUnreachable
from opsdrill.hosts.driver import DriverContext
from opsdrill.hosts.drivers.sandbox.driver import SandboxDriver
from opsdrill.hosts.drivers.sandbox.host import SandboxHost
from opsdrill.hosts.session import Session, SessionRequest, Terminal
from opsdrill.model.host import Command
from opsdrill.model.scenario import HostSpec

SECONDS = 30.0
SFTP = Path("/usr/bin/sftp")


@asynccontextmanager
async def opened(host: SandboxHost, request: SessionRequest) -> AsyncIterator[Session]:
    session = await host.open(request)
    try:
        yield session
    finally:
        await session.close()


async def said(session: Session) -> str:
    parts = []
    async with asyncio.timeout(SECONDS):
        while part := await session.read("stdout"):
            parts.append(part)
    return b"".join(parts).decode(errors="replace")


async def until(session: Session, word: str) -> str:
    found = ""
    async with asyncio.timeout(SECONDS):
        while word not in found:
            part = await session.read("stdout")
            assert part, found
            found += part.decode(errors="replace")
    return found


async def asked(host: SandboxHost, run: str, terminal: Terminal | None = None) -> str:
    async with opened(host, SessionRequest(run, terminal=terminal)) as session:
        return await said(session)


@pytest.mark.parametrize("terminal", [None, Terminal()], ids=["pipes", "terminal"])
@pytest.mark.parametrize(
    "run",
    [
        "grep -e ^Cap -e ^NoNewPrivs -e ^Seccomp: /proc/self/status",
        "ulimit -a",
        "cat /proc/self/cgroup | sed 's/-[0-9]*$//'",
        "ls /proc | grep -c '^[0-9]*$' >/dev/null; cat /proc/1/comm",
        "mount -t tmpfs x /mnt 2>&1; unshare -U true 2>&1; dmesg 2>&1 | head -n 1",
        "ls -1A / /root /home; wc -l < /etc/passwd",
        "cat /sys/kernel/uevent_seqnum 2>&1; ls -1 /dev",
        "readlink /proc/self/ns/net /proc/self/ns/mnt /proc/self/ns/user /proc/self/ns/pid",
    ],
)
async def test_confined_as_a_command(
    host: SandboxHost, run: str, terminal: Terminal | None
) -> None:
    """A session has the rights, bounds and view that a command has."""
    answer = await host.run(Command(run=run))
    assert (await asked(host, run, terminal)).replace("\r\n", "\n") == answer.stdout


async def test_processes_are_bounded(host: SandboxHost) -> None:
    """A fork bomb in a session meets the host's bound, and other commands still run."""
    bomb = "for i in $(seq 200); do sleep 864197531 & done 2>/dev/null; echo started; wait"
    async with opened(host, SessionRequest(bomb)) as session:
        await asyncio.wait([asyncio.ensure_future(said(session))], timeout=5)
        answer = await host.run(Command(run="set -- /proc/[0-9]*; echo $#"))
        assert int(answer.stdout) <= 64 + 4
        async with opened(host, SessionRequest("echo here")) as other:
            assert await said(other) == "here\n"


async def test_nothing_of_ours_inside(host: SandboxHost) -> None:
    """Beside a session no process of ours can be looked into, nor has it a telling name."""
    async with opened(host, SessionRequest(files=True)) as session:
        await session.write(struct.pack(">IBI", 5, 1, 3))
        await session.read("stdout")
        telling = await host.run(Command(run="pgrep -f 'python|opsdrill|sandbox'"))
        assert telling.exit_code == 1, telling.stdout
        seen = await host.run(
            Command(
                run="p=$(pgrep -x sftp-server); echo $p | wc -w; "
                "readlink /proc/$p/fd/* /proc/$p/exe /proc/$p/cwd; cat /proc/$p/maps; "
                "cat /proc/$p/environ /proc/$p/mem 2>/dev/null | head -c 10"
            )
        )
    assert seen.stdout == "1\n", seen.stdout


async def test_terminals_are_bounded_and_given_back(host: SandboxHost) -> None:
    """A host has so many terminals; one more is an error that says so, until some are closed."""
    held = []
    try:
        with pytest.raises(HostError, match="terminal"):
            for _ in range(80):
                held.append(await host.open(SessionRequest("sleep 99", terminal=Terminal())))
        for session in held[:40]:
            await session.close()
        assert "/dev/pts/" in await asked(host, "tty", Terminal())
    finally:
        await asyncio.gather(*(session.close() for session in held))


async def test_terminals_were_taken_away(host: SandboxHost) -> None:
    """Whatever a host puts in the place of its terminals, it gets none of it opened for it."""
    await host.run(Command(run="mv /dev /old; mkdir -p /dev/pts; mkfifo /dev/pts/ptmx"))
    with pytest.raises(HostError, match="terminal"):
        async with asyncio.timeout(SECONDS):
            await host.open(SessionRequest("tty", terminal=Terminal()))
    await host.run(Command(run="rm /dev/pts/ptmx; ln -s /etc/shadow /dev/pts/ptmx"))
    with pytest.raises(HostError, match="terminal"):
        await host.open(SessionRequest("tty", terminal=Terminal()))


async def test_full_screen_programs(host: SandboxHost) -> None:
    """`less` and `top` find a terminal that they can work with."""
    terminal = Terminal("xterm", 80, 24)
    for program, shows in (("less /etc/services", "http"), ("top", "PID")):
        async with opened(host, SessionRequest(program, terminal=terminal)) as session:
            await until(session, shows if program == "top" else "echo")
            await session.write(b"/http\rq" if program.startswith("less") else b"q")
            assert (await session.wait()).exit_code == 0


async def test_host_given_back_ends_its_sessions(driver: SandboxDriver) -> None:
    """With its host a session ends, and says that the host did; a new one cannot be had."""
    fleet = await driver.provision("ending", [HostSpec(name="web-01")])
    host = fleet.hosts["web-01"]
    sessions = [
        await host.open(SessionRequest("sleep 99")),
        await host.open(SessionRequest("sleep 99", terminal=Terminal())),
        await host.open(SessionRequest(files=True)),
    ]
    await fleet.release()
    for session in sessions:
        async with asyncio.timeout(SECONDS):
            end = await session.wait()
            assert end.exit_code is None
            assert end.reason or end.signal == "KILL", end
            await said(session)
        await session.close()
    with pytest.raises(HostUnreachable):
        await host.open(SessionRequest("true"))


async def test_no_descriptor_is_left(host: SandboxHost) -> None:
    """Sessions that are over leave no descriptor here."""
    for terminal in (None, Terminal()):
        await asked(host, "true", terminal)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for terminal in (None, Terminal()) * 5:
        await asked(host, "true", terminal)
        with pytest.raises(HostError):
            await host.open(SessionRequest("true", user="nosuchuser", terminal=terminal))
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


async def test_what_goes_on_writes_on(host: SandboxHost) -> None:
    """A background process whose session is over is not ended by writing to it, nor held up."""
    writes = "(while :; do echo 0123456789; echo >> /tmp/n; done) & sleep 0.2; exit 0"
    async with opened(host, SessionRequest(writes)) as session:
        await session.wait()
    count = Command(run="a=$(wc -l < /tmp/n); sleep 1; b=$(wc -l < /tmp/n); echo $((b > a + 100))")
    assert (await host.run(count)).stdout == "1\n"


async def test_too_large_an_environment(host: SandboxHost) -> None:
    """An environment that cannot be handed over is an error, and the host goes on."""
    with pytest.raises(HostError, match="environment"):
        await host.open(SessionRequest("true", environment={"A": "x" * 100_000}))
    assert await asked(host, "echo on") == "on\n"


@pytest.mark.parametrize(
    "packet",
    [
        b"SSH-2.0-x\r\n\r\n",
        struct.pack(">IB", 0xFFFFFFFF, 1),
        struct.pack(">IB", 0, 1),
        struct.pack(">IBI", 5, 3, 1),
        struct.pack(">IBI", 5, 1, 3) + b"\0\0\0\1",
    ],
    ids=["no SFTP", "endless", "empty", "no INIT", "no type"],
)
async def test_no_sftp(host: SandboxHost, packet: bytes) -> None:
    """What is no SFTP ends the session with a status; nothing waits for ever."""
    async with opened(host, SessionRequest(files=True)) as session:
        await session.write(packet)
        async with asyncio.timeout(SECONDS):
            assert (await session.wait()).exit_code == 1


async def test_broken_sftp_requests(host: SandboxHost) -> None:
    """A request that breaks off is answered as a bad one, and the session goes on."""
    async with opened(host, SessionRequest(files=True)) as session:
        await session.write(struct.pack(">IBI", 5, 1, 3))
        await session.read("stdout")
        for kind in (*range(2, 21), 99, 200, 255):
            await session.write(struct.pack(">IBI", 5, kind, 7))
            answer = await session.read("stdout")
            kind_of, number, status = struct.unpack(">BII", answer[4:13])
            assert (kind_of, number) == (101, 7)
            assert status in (5, 8), kind
        await session.write(struct.pack(">IBII", 9, 17, 7, 0xFFFFFFFF))
        assert (await session.read("stdout"))[9:13] == struct.pack(">I", 5)


RELAY = """
import os, socket, sys, threading
there = socket.socket(socket.AF_UNIX)
there.connect(sys.argv[1])
def back():
    while data := there.recv(1 << 18):
        os.write(1, data)
    os._exit(0)
threading.Thread(target=back, daemon=True).start()
while data := os.read(0, 1 << 18):
    there.sendall(data)
there.shutdown(socket.SHUT_WR)
threading.Event().wait()
"""


async def sftp(
    host: SandboxHost, folder: Path, lines: Sequence[str], user: str = "root"
) -> tuple[int | None, str]:
    """What OpenSSH's own client does with these lines, and says."""
    relay = folder / "relay.py"
    relay.write_text(RELAY)
    place = folder / "socket"
    place.unlink(missing_ok=True)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with opened(host, SessionRequest(user=user, files=True)) as session:

            async def forth() -> None:
                while data := await reader.read(1 << 16):
                    await session.write(data)
                await session.write_eof()

            giving = asyncio.ensure_future(forth())
            while data := await session.read("stdout"):
                writer.write(data)
                await writer.drain()
            giving.cancel()
            writer.close()

    async with await asyncio.start_unix_server(serve, place):
        command = f"{sys.executable} -S {relay} {place}"
        client = await asyncio.create_subprocess_exec(
            str(SFTP),
            *("-b", "-", "-D", command),
            cwd=folder,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(4 * SECONDS):
            out, _ = await client.communicate("\n".join(lines).encode())
    return client.returncode, out.decode(errors="replace")


@pytest.mark.skipif(not SFTP.exists(), reason="it takes the Debian package openssh-client")
async def test_openssh_client(host: SandboxHost, tmp_path: Path) -> None:
    """OpenSSH's client puts, gets, lists, links, renames, removes and sets modes and times."""
    (tmp_path / "file").write_bytes(bytes(range(256)) * 4000)
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "x").write_text("x")
    status, text = await sftp(
        host,
        tmp_path,
        [
            "pwd",
            "put -p file /srv/file",
            "put -r tree /srv/tree",
            "chmod 600 /srv/file",
            "rename /srv/file /srv/other",
            "symlink other /srv/link",
            "ln /srv/other /srv/hard",
            "get /srv/link back",
            "get -r /srv/tree tree-back",
            "ls -la /srv",
            "df /srv",
            "rm /srv/hard",
            "mkdir /srv/new",
            "rmdir /srv/new",
            "-get /nothing nothing",
        ],
    )
    assert status == 0, text
    assert "Remote working directory: /root" in text
    assert "-rw-------" in text
    assert "root     root" in text
    assert '/nothing" not found' in text
    assert (tmp_path / "back").read_bytes() == (tmp_path / "file").read_bytes()
    assert (tmp_path / "tree-back" / "x").read_text() == "x"
    answer = await host.run(Command(run="cd /srv; stat -c %a,%Y other; readlink link; ls"))
    changed = int((tmp_path / "file").stat().st_mtime)
    assert answer.stdout == f"600,{changed}\nother\nlink\nother\ntree\n"


@pytest.mark.skipif(not SFTP.exists(), reason="it takes the Debian package openssh-client")
async def test_large_files_take_no_memory(tmp_path: Path) -> None:
    """200 MB pass over SFTP both ways, and are never in the memory of a process whole."""
    with (tmp_path / "large").open("wb") as file:
        for number in range(200):
            file.write(number.to_bytes(4, "big") * 250_000)
    driver = SandboxDriver(DriverContext(tmp_path / "state", {"size": "400M"}))
    try:
        async with await driver.provision("large", [HostSpec(name="web-01")]) as fleet:
            host = fleet.hosts["web-01"]
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            lines = ["put large /srv/large", "get /srv/large back"]
            status, text = await sftp(host, tmp_path, lines)
            assert status == 0, text
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            assert grown < 20_000, f"{grown} KiB more than before"
            async with opened(host, SessionRequest(files=True)):
                shown = "grep VmHWM /proc/$(pgrep -x sftp-server)/status"
                most = int((await host.run(Command(run=shown))).stdout.split()[1])
            assert most < 60_000, f"{most} KiB"
    finally:
        await driver.close()
    assert (tmp_path / "back").read_bytes() == (tmp_path / "large").read_bytes()
