"""What the gateway lets nobody do, tried by the real client and by packets of our own."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path

import asyncssh
import pytest
from asyncssh.connection import SSHClientConnection
from asyncssh.constants import MSG_CHANNEL_OPEN, MSG_CHANNEL_REQUEST, MSG_USERAUTH_REQUEST
from asyncssh.packet import Boolean, String, UInt32
from tests.integration.gateway.conftest import Drill, recorder

from opsdrill.agents.gateway import Gateway, bounds
from opsdrill.hosts.driver import Fleet

pytestmark = pytest.mark.sandbox


async def connected(drill: Drill, host: str = "web-01") -> SSHClientConnection:
    key = asyncssh.import_private_key(drill.gateway.private_key)
    return await asyncssh.connect(
        "127.0.0.1", drill.gateway.ports[host], username="root", client_keys=[key],
        known_hosts=None, config=None, agent_path=None,
    )  # fmt: skip


async def refused(drill: Drill) -> list[object]:
    calls = await drill.returned(1)
    return [call.arguments for call in calls if call.outcome == "refused"]


async def test_another_runs_key(drill: Drill, fleet: Fleet, tmp_path: Path) -> None:
    """[W1.1]"""
    other = tmp_path / "other"
    other.mkdir()
    async with Gateway(fleet.hosts, recorder()) as another:
        another.ssh_config(other)
        text = drill.config.read_text().replace(f"{drill.folder}/id_", f"{other}/id_")
        (other / "config").write_text(text)
        ran = await drill.run("/usr/bin/ssh", "-F", str(other / "config"), "web-01", "true")
        assert ran.status == 255 and b"Permission denied" in ran.err
    assert drill.record().tasks == ()


async def test_no_key_and_no_password(drill: Drill) -> None:
    """[W1.1]"""
    ran = await drill.ssh("-o", "PubkeyAuthentication=no", "web-01", "true")
    assert ran.status == 255 and b"Permission denied (publickey)" in ran.err


async def test_after_the_job(drill: Drill) -> None:
    """[W1.2] Only while the job runs: the port is closed, what was under way is ended."""
    going = await connected(drill)
    await drill.gateway.close()
    assert (await drill.ssh("web-01", "true")).status == 255
    await asyncio.wait_for(going.wait_closed(), 10)
    with pytest.raises((OSError, asyncssh.Error)):
        await going.run("true")
    assert drill.record().tasks == ()


async def test_an_unknown_user(drill: Drill) -> None:
    """[W2.8]"""
    ran = await drill.ssh("-l", "nobody-there", "web-01", "id")
    assert ran.status == 255 and b"nobody-there" in ran.err
    assert (await drill.only_call()).outcome == "refused"
    ran = await drill.ssh("-l", "-oX; rm -rf /", "web-01", "id")
    assert ran.status == 255


async def test_a_known_user(drill: Drill) -> None:
    """[W1.1]"""
    ran = await drill.ssh("-l", "nobody", "web-01", "id -un")
    assert ran.out in (b"nobody\n", b"")


@pytest.mark.parametrize(
    ("options", "request_", "to"),
    [
        (("-W", "127.0.0.1:22"), "direct-tcpip", "127.0.0.1:22"),
        (("-N", "-o", "ExitOnForwardFailure=yes", "-R", "0:127.0.0.1:22"), "tcpip-forward", ":0"),
        (("-N", "-o", "ExitOnForwardFailure=yes", "-R", "/tmp/s:127.0.0.1:22"),
         "streamlocal-forward", "/tmp/s"),
    ],
)  # fmt: skip
async def test_nothing_is_forwarded(
    drill: Drill, options: tuple[str, ...], request_: str, to: str
) -> None:
    """[W1.3]"""
    ran = await drill.ssh(*options, "web-01", seconds=20)
    assert ran.status == 255
    (told,) = await refused(drill)
    assert isinstance(told, dict) and told["request"] == request_ and to in str(told["to"])


@pytest.mark.parametrize("option", ["-L", "-D"])
async def test_a_local_forward_reaches_nothing(drill: Drill, option: str) -> None:
    """The client listens; what connects is refused here."""
    connection = await connected(drill)
    async with connection:
        with pytest.raises(asyncssh.ChannelOpenError):
            await connection.open_connection("127.0.0.1", drill.gateway.ports["db-01"])
        with pytest.raises(asyncssh.ChannelOpenError):
            await connection.open_unix_connection("/var/run/docker.sock")
        assert await connection.run("echo still", check=True)
    assert len(await refused(drill)) == 2


async def test_agent_and_display(drill: Drill, tmp_path: Path) -> None:
    """[W1.3] Asked for beside a command, which runs without."""
    connection = await connected(drill)
    async with connection:
        channel, _ = await connection.create_session(asyncssh.SSHClientSession, "sleep 0.2; env")
        for name in (b"auth-agent-req@openssh.com",):
            channel._send_request(name)
        channel._send_request(b"x11-req", Boolean(False), String("MIT"), String("00"), UInt32(0))
        await channel.wait_closed()
    asked = [told["request"] for told in await refused(drill) if isinstance(told, dict)]
    assert asked == ["auth-agent", "x11"]


async def test_a_nul_and_a_huge_command(drill: Drill) -> None:
    """[W1.4]"""
    connection = await connected(drill)
    async with connection:
        with pytest.raises(asyncssh.ChannelOpenError):
            await connection.run("echo a\0b")
        ran = await connection.run(f"printf %s {'x' * 200_000} | wc -c")
        assert ran.stdout == "200000\n"
        with pytest.raises((asyncssh.Error, OSError)):
            await connection.run("x" * 10_000_000)
    assert (await drill.ssh("web-01", "true " + "x" * 100_000)).status == 0
    assert [call.outcome for call in await drill.returned(3)] == ["refused", "ran", "ran"]


async def test_ten_thousand_channels(drill: Drill) -> None:
    """[W1.4] The connection is cut off; others go on."""
    connection = await connected(drill)
    for number in range(10_000):
        connection.send_packet(
            MSG_CHANNEL_OPEN, String(b"session"), UInt32(number), UInt32(1 << 31), UInt32(32768)
        )
    await asyncio.wait_for(connection.wait_closed(), 30)
    assert (await drill.ssh("web-01", "echo on")).out == b"on\n"
    calls = await drill.returned(bounds.REFUSALS + 1)
    assert len(calls) == bounds.REFUSALS + 1


async def test_channels_one_after_the_other(drill: Drill) -> None:
    async with await connected(drill) as connection:
        for _ in range(100):
            await connection.run("true", check=True)


async def test_attempts_to_log_in_are_counted(drill: Drill) -> None:
    tried = 0

    class Guess(asyncssh.SSHClient):
        def public_key_auth_requested(self) -> asyncssh.SSHKey | None:
            nonlocal tried
            tried += 1
            return asyncssh.generate_private_key("ssh-ed25519") if tried < 1000 else None

    with pytest.raises((asyncssh.Error, OSError)):
        await asyncssh.connect(
            "127.0.0.1", drill.gateway.ports["web-01"], username="root", client_factory=Guess,
            known_hosts=None, config=None, agent_path=None, client_keys=None,
            preferred_auth="publickey",
        )  # fmt: skip
    assert 1 < tried <= bounds.LOGIN_TRIES + 1


@pytest.mark.parametrize(
    "sent",
    [
        b"", b"\n" * 9000, b"GET / HTTP/1.1\r\n\r\n", b"x" * 100_000, b"SSH-2.0-\xff\xff\r\n",
        b"SSH-2.0-x\r\n" + b"\xff" * 1000, b"SSH-2.0-x\r\n" + b"\0\0\0\x0c\x0a" + b"\0" * 100,
        b"SSH-2.0-" + b"y" * 7000 + b"\r\n",
    ],
)  # fmt: skip
async def test_malformed_greetings(drill: Drill, sent: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", drill.gateway.ports["web-01"])
    writer.write(sent)
    if sent:
        await asyncio.wait_for(reader.read(1 << 20), 10)
    assert (await drill.ssh("web-01", "echo on")).out == b"on\n"
    writer.close()


async def test_malformed_packets(drill: Drill) -> None:
    """Each ends its own connection at most."""
    packets: list[tuple[int, tuple[bytes, ...]]] = [
        (MSG_CHANNEL_OPEN, (b"\0\0",)),
        (MSG_CHANNEL_OPEN, (String(b"\xff"), UInt32(0), UInt32(0), UInt32(0))),
        (MSG_CHANNEL_OPEN, (String(b"no-such"), UInt32(0), UInt32(9), UInt32(9))),
        (MSG_CHANNEL_REQUEST, (UInt32(77), String(b"exec"), Boolean(True))),
        (MSG_USERAUTH_REQUEST, (String(b"root"), String(b"ssh-connection"), String(b"none"))),
        (94, (UInt32(0), String(b"data of no channel"))),
        (200, (os.urandom(40),)),
        (50, (b"\xff" * 9,)),
    ]
    for kind, parts in packets:
        connection = await connected(drill)
        connection.send_packet(kind, *parts)
        connection.abort() if kind == 200 else connection.close()
        await asyncio.wait_for(connection.wait_closed(), 10)
    assert (await drill.ssh("web-01", "echo on")).out == b"on\n"


async def test_malformed_files(drill: Drill) -> None:
    """What is no SFTP, or could not be told, ends the session before it reaches the host."""
    connection = await connected(drill)
    hello = b"\0\0\0\x05\x01\0\0\0\x03"
    opening = b"\x03" + UInt32(1) + String(b"/tmp/a\0b") + UInt32(0x1A) + UInt32(0)
    async with connection:
        for sent in (
            b"\xff" * 100, b"\0\0\0\0", hello + UInt32(len(opening)) + opening,
            hello + UInt32(70_000) + b"\x03" + b"x" * 70_000, hello + b"\0\0\0\x02\x03\0",
        ):  # fmt: skip
            process = await connection.create_process(subsystem="sftp", encoding=None)
            process.stdin.write(sent)
            await asyncio.wait_for(process.wait(), 10)
            assert process.exit_status in (1, 255)
    calls = await drill.returned(5)
    assert len(calls) == 5 and {call.kind for call in calls} == {"other"}


async def test_subsystems_and_second_requests(drill: Drill) -> None:
    async with await connected(drill) as connection:
        with pytest.raises(asyncssh.ChannelOpenError):
            await connection.create_process(subsystem="netconf")
        process = await connection.create_process("sleep 0.3; echo one")
        process.channel._send_request(b"exec", String(b"echo two"), want_reply=False)
        process.channel._send_request(b"shell")
        assert (await process.wait()).stdout == "one\n"
    calls = await drill.returned(2)
    assert [call.outcome for call in calls] == ["refused", "ran"]


async def test_the_files_are_for_this_user_alone(drill: Drill) -> None:
    modes = {path.name: path.stat().st_mode & 0o777 for path in drill.folder.iterdir()}
    assert modes == {"config": 0o600, "known_hosts": 0o600, "id_ed25519": 0o600}


async def test_another_host_key_is_not_taken(drill: Drill, fleet: Fleet, tmp_path: Path) -> None:
    """The pinned key is the run's."""
    other = tmp_path / "other"
    other.mkdir()
    async with Gateway(fleet.hosts, recorder()) as another:
        another.ssh_config(other)
        port = str(another.ports["web-01"])
        ran = await drill.ssh("-o", f"Port={port}", "web-01", "true")
        assert ran.status == 255 and b"verification failed" in ran.err


async def test_what_is_not_recorded_does_not_reach_the_host(fleet: Fleet, tmp_path: Path) -> None:
    """[W2.1] A sink that fails: nothing more is passed on, and the gateway says so."""
    from opsdrill.errors import StoreError
    from opsdrill.evidence.recorder import Recorder
    from opsdrill.model.event import JobCreated, JobEvent
    from opsdrill.model.ticket import Ticket

    class Full:
        def append(self, seq: int, event: JobEvent) -> None:
            if seq > 2:
                raise StoreError("the disk is full")

    kept = Recorder(Full(), Ticket(title="T", body="B"))
    kept.record(JobCreated(job="job-1"))
    async with Gateway(fleet.hosts, kept) as gateway:
        gateway.ssh_config(tmp_path)
        drill = Drill(dict(fleet.hosts), gateway, kept, tmp_path)
        assert (await drill.ssh("web-01", "touch /tmp/there")).status == 255
        assert isinstance(gateway.fault, StoreError)
        assert await drill.on_host("test -e /tmp/there || echo no") == "no"


async def ended(reader: asyncio.StreamReader) -> bool:
    """The other side closes it within a second."""
    try:
        async with asyncio.timeout(1):
            while await reader.read(64):
                pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


async def test_strangers_leave_room_for_the_agent(drill: Drill) -> None:
    """Connections that say nothing are bounded; logged in ones go on, new ones come."""
    port = drill.gateway.ports["web-01"]
    async with await connected(drill) as connection:
        opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(300)]
        assert (await connection.run("echo on")).stdout == "on\n"
        assert (await drill.ssh("web-01", "echo in")).out == b"in\n"
        left = 300 - sum(await asyncio.gather(*(ended(reader) for reader, _ in opened)))
        assert bounds.STRANGERS - 2 <= left <= bounds.STRANGERS
        for _, writer in opened:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
    for _ in range(100):
        if (await drill.ssh("web-01", "true")).status == 0:
            return
    raise AssertionError("nobody is let in any more")


async def test_a_window_without_end_and_nobody_reading(drill: Drill) -> None:
    """What the client does not take from the network is not kept for it here."""
    connection = await connected(drill)
    before = resident()
    for _ in range(8):
        process = await connection.create_process("yes", encoding=None, window=(1 << 31) - 1)
        process.stdout.channel.pause_reading()
    transport = connection._transport
    assert isinstance(transport, asyncio.Transport)
    transport.pause_reading()
    await asyncio.sleep(2)
    assert resident() - before < 64 * 1024 * 1024
    connection.abort()


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
