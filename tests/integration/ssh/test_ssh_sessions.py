"""Sessions over SSH: whoever logs in, and whatever becomes of the connection."""

from __future__ import annotations

import asyncio
import struct

import pytest
from tests.integration.sshd import Machine, Rig, host_of

from opsdrill.errors import HostError, HostUnreachable
from opsdrill.hosts.driver import Host
from opsdrill.hosts.session import SessionEnd, SessionRequest, Terminal
from opsdrill.model.host import Command

SECONDS = 60.0


async def said(host: Host, run: str, user: str = "root", terminal: Terminal | None = None) -> str:
    """What a session says, a terminal's line ends as anywhere else."""
    session = await host.open(SessionRequest(run, user=user, terminal=terminal))
    parts = []
    try:
        async with asyncio.timeout(SECONDS):
            while part := await session.read("stdout"):
                parts.append(part)
            assert (await session.wait()).exit_code == 0
    finally:
        await session.close()
    return b"".join(parts).decode().replace("\r\n", "\n")


async def speaks_sftp(host: Host, user: str) -> bool:
    session = await host.open(SessionRequest(user=user, files=True))
    try:
        await session.write(struct.pack(">IBI", 5, 1, 3))
        async with asyncio.timeout(SECONDS):
            return (await session.read("stdout"))[4:9] == struct.pack(">BI", 2, 3)
    finally:
        await session.close()


@pytest.mark.parametrize("terminal", [None, Terminal()], ids=["pipes", "terminal"])
async def test_by_way_of_sudo(machine: Machine, terminal: Terminal | None) -> None:
    """Where the login is not root, sessions become root, and others, by sudo as commands do."""
    async with host_of(machine.lab(user="deploy", sudo=True)) as host:
        assert await said(host, "id -un; pwd", "root", terminal) == "root\n/root\n"
        assert await said(host, "id -un; pwd", "plain", terminal) == "plain\n/home/plain\n"
        assert await speaks_sftp(host, "root")
        assert await speaks_sftp(host, "plain")


async def test_without_sudo(machine: Machine) -> None:
    """A login that cannot become others has sessions of its own alone."""
    async with host_of(machine.lab(user="plain")) as host:
        assert await said(host, "id -un", "plain") == "plain\n"
        assert await speaks_sftp(host, "plain")
        with pytest.raises(HostError, match="cannot become root"):
            await host.open(SessionRequest("true"))


async def test_signal_by_way_of_sudo(machine: Machine) -> None:
    """A signal reaches the program behind sudo, and not sudo alone."""
    async with host_of(machine.lab(user="deploy", sudo=True)) as host:
        session = await host.open(SessionRequest("trap 'echo caught; exit 3' USR1; echo a; cat"))
        assert await session.read("stdout") == b"a\n"
        await session.signal("USR1")
        await session.write_eof()
        async with asyncio.timeout(SECONDS):
            assert await session.read("stdout") == b"caught\n"
            assert await session.wait() == SessionEnd(3)
        await session.close()


async def test_built_in_sftp_serves_the_login(machine: Machine) -> None:
    """Where the machine has no SFTP server but the one within sshd, its login is served by that."""
    machine.enter("mv /usr/lib/openssh/sftp-server /usr/lib/openssh/other")
    async with host_of(machine.lab()) as host:
        assert await speaks_sftp(host, "root")
        with pytest.raises(HostError, match="openssh-sftp-server"):
            await host.open(SessionRequest(user="www-data", files=True))


async def test_server_without_terminals(rig: Rig) -> None:
    """A server that gives no terminal is an error that says so, at once."""
    machine = rig.machine(config="PermitTTY no")
    async with host_of(machine.lab()) as host:
        for _ in range(3):
            with pytest.raises(HostError, match="no terminal"):
                async with asyncio.timeout(20):
                    await host.open(SessionRequest("tty", terminal=Terminal()))
        assert await said(host, "echo on") == "on\n"


@pytest.mark.parametrize("most", [2, 10])
async def test_more_sessions_than_a_connection_has(rig: Rig, most: int) -> None:
    """Sessions that stay open hold up neither others nor commands."""
    machine = rig.machine(config=f"MaxSessions {most}")
    async with host_of(machine.lab()) as host:
        sessions = [await host.open(SessionRequest("cat")) for _ in range(20)]
        async with asyncio.timeout(SECONDS):
            answer = await host.run(Command(run="echo on", timeout=20))
            assert answer.stdout == "on\n"
            for session in sessions:
                await session.write(b"x")
                assert await session.read("stdout") == b"x"
                await session.close()
        left = machine.processes("cat")
        assert not left


async def test_connection_is_lost(machine: Machine) -> None:
    """A session whose connection was lost has a reason and no status; a new one can be had."""
    async with host_of(machine.lab()) as host:
        for terminal in (None, Terminal()):
            session = await host.open(SessionRequest("kill -9 $PPID; sleep 99", terminal=terminal))
            async with asyncio.timeout(SECONDS):
                end = await session.wait()
                assert (end.exit_code, end.signal) == (None, None)
                assert "connection" in (end.reason or "")
                while await session.read("stdout"):
                    pass
            await session.close()
        assert await said(host, "echo on") == "on\n"
        machine.end()
        with pytest.raises(HostUnreachable):
            await host.open(SessionRequest("true"))
