"""The recording gateway in front of the hosts of every driver: the same as far as each can run."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncssh
import pytest
from tests.integration.gateway.conftest import Drill, opened
from tests.integration.gateway.test_gateway_shells import keyboard, ready

from opsdrill.hosts.driver import Driver
from opsdrill.model.scenario import HostSpec

RUNNING = ("container", "container of sh only", "local", "sandbox", "ssh", "ssh to sh only")
on_every_driver = pytest.mark.parametrize("driver_name", RUNNING)


@asynccontextmanager
async def gateway_to(
    driver: Driver,
    folder: Path,
    *,
    deny: tuple[str, ...] = (),
    command_seconds: float | None = None,
) -> AsyncIterator[Drill]:
    """A gateway in front of a host of the driver."""
    async with (
        await driver.provision("gateway", [HostSpec(name="web-01")]) as fleet,
        opened(fleet.hosts, folder, deny=deny, command_seconds=command_seconds) as drill,
    ):
        yield drill


async def none_sleeps(drill: Drill, seconds: int) -> None:
    """Wait until there is no such process, which must be soon."""
    first, last = divmod(seconds, 10)
    looked = f"grep -lsxz {first}[{last}] /proc/[0-9]*/cmdline || :"  # not who looks
    for _ in range(50):
        if not await drill.on_host(looked):
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"sleep {seconds} goes on")


@on_every_driver
async def test_commands_with_status_and_input(driver: Driver, tmp_path: Path) -> None:
    """[W2.3] Text, output, exit status, signal; bytes go in and out as they are."""
    async with gateway_to(driver, tmp_path) as drill:
        ran = await drill.ssh("web-01", "hostname; echo err >&2; exit 7")
        assert (ran.status, ran.out, ran.err) == (7, b"web-01\n", b"err\n")
        data = os.urandom(300_000)
        assert (await drill.ssh("web-01", "cat", data=data)).out == data
        assert (await drill.ssh("web-01", "wc -c; echo late", data=b"12345")).out == b"5\nlate\n"
        await drill.ssh("web-01", "kill -TERM $$")
        calls = await drill.returned(4)
    assert [(call.command, call.exit_code, call.outcome) for call in calls] == [
        ("hostname; echo err >&2; exit 7", 7, "ran"), ("cat", 0, "ran"),
        ("wc -c; echo late", 0, "ran"), ("kill -TERM $$", 143, "ran"),
    ]  # fmt: skip
    assert calls[0].output == "web-01\nerr"


@on_every_driver
async def test_files_go_both_ways(driver: Driver, tmp_path: Path) -> None:
    """[W2.6] By SFTP, which scp speaks today."""
    data = os.urandom(300_000)
    (tmp_path / "there").write_bytes(data)
    async with gateway_to(driver, tmp_path) as drill:
        assert (await drill.run("scp", "there", "web-01:/tmp/x y")).status == 0
        assert (await drill.run("scp", "web-01:/tmp/x y", "back")).status == 0
        assert (tmp_path / "back").read_bytes() == data
        batch = b"mkdir /tmp/d\nrename '/tmp/x y' /tmp/d/z\nls -1 /tmp/d\n"
        ran = await drill.run("sftp", "-b", "-", "web-01", data=batch)
        assert ran.status == 0 and b"/tmp/d/z" in ran.out
        written = [call.path for call in drill.calls() if call.kind == "write_file"]
    assert written[0] == "/tmp/x y"


@on_every_driver
async def test_a_terminal(driver: Driver, tmp_path: Path) -> None:
    """[W2.4] Its size, keys that interrupt, and each line in the record."""
    async with gateway_to(driver, tmp_path) as drill:
        async with keyboard(drill) as keys:
            await ready(keys)
            assert "30 100" in await keys.line("stty size\r")
            keys.type("echo go; sleep 4731\r")
            await keys.until("go\r")
            await asyncio.sleep(0.5)
            keys.type("\x03")
            await keys.until("READY>")
            assert "130" in await keys.line("echo $?\r")
            keys.type("exit 3\r")
            await keys.until("closed")
        await drill.returned(6)
        commands = [call.command for call in drill.calls() if call.kind == "shell"]
        assert drill.calls()[0].exit_code == 3
        await none_sleeps(drill, 4731)
    assert commands[1:] == ["stty size", "echo go; sleep 4731", "echo $?", "exit 3"]


@on_every_driver
async def test_lines_of_a_script(driver: Driver, tmp_path: Path) -> None:
    """[W2.5] A shell that is given what it does."""
    async with gateway_to(driver, tmp_path) as drill:
        for words in (("web-01",), ("web-01", "sh", "-s")):
            ran = await drill.ssh("-T", *words, data=b"echo one\nfalse\necho last")
            assert ran.out == b"one\nlast\n"
        calls = await drill.returned(8)
    lines = ["echo one", "false", "echo last"]
    assert [call.command for call in calls] == ["", *lines, "sh -s", *lines]


@on_every_driver
async def test_signals(driver: Driver, tmp_path: Path) -> None:
    """[W2.3] A client may send them, and hears of the one that ended its command."""
    async with gateway_to(driver, tmp_path) as drill:
        key = asyncssh.import_private_key(drill.gateway.private_key)
        port = drill.gateway.ports["web-01"]
        async with (
            asyncssh.connect(
                "127.0.0.1", port, username="root", client_keys=[key], known_hosts=None, config=None
            ) as client,
            client.create_process(
                "trap 'echo caught' USR1; echo ready; while :; do sleep 0.1; done"
            ) as process,
        ):
            assert await process.stdout.readline() == "ready\n"
            process.send_signal("USR1")
            assert await process.stdout.readline() == "caught\n"
            process.send_signal("KILL")
            ended = await process.wait()
        assert (ended.exit_signal is not None and ended.exit_signal[0] == "KILL") or (
            ended.exit_status == 137
        )
        call = await drill.only_call()
    assert (call.outcome, call.exit_code) == ("ran", 137)


@on_every_driver
async def test_what_is_forbidden_and_what_takes_too_long(driver: Driver, tmp_path: Path) -> None:
    """[W4.1, W5.1]"""
    async with gateway_to(driver, tmp_path, deny=(r"\breboot\b",), command_seconds=2) as drill:
        assert (await drill.ssh("web-01", "reboot")).status == 126
        text = "trap '' TERM HUP; (setsid sleep 4732 &); echo begun; sleep 4732; echo no"
        ran = await drill.ssh("web-01", text)
        assert (ran.status, ran.out) == (124, b"begun\n")
        assert b"killed after 2 s with everything it started" in ran.err
        await none_sleeps(drill, 4732)
        calls = await drill.returned(2)
    assert [call.outcome for call in calls] == ["refused", "timed_out"]


@on_every_driver
async def test_the_end_of_the_job(driver: Driver, tmp_path: Path) -> None:
    """[W1.2] What runs is killed, whatever it heeds; what was left in the background stays."""
    async with gateway_to(driver, tmp_path) as drill:
        await drill.ssh("web-01", "setsid sleep 4733 >/dev/null 2>&1 </dev/null &")
        text = "trap '' HUP; (setsid sleep 4734 &); echo begun; sleep 4734"
        going = asyncio.create_task(drill.ssh("web-01", text))
        await drill.on_host("until grep -lsxz 473[4] /proc/[0-9]*/cmdline; do sleep 0.1; done")
        await drill.gateway.close()
        assert (await going).status == 255
        await none_sleeps(drill, 4734)
        assert await drill.on_host("grep -lsxz 473[3] /proc/[0-9]*/cmdline")


@pytest.mark.parametrize("driver_name", ["fake"])
async def test_hosts_that_answer_from_a_script(driver: Driver, tmp_path: Path) -> None:
    """[W2.3, W2.8] Commands are as on any host; what a fake host has not is refused."""
    async with gateway_to(driver, tmp_path, command_seconds=1) as drill:
        ran = await drill.ssh("web-01", "echo out; echo err >&2")
        assert (ran.status, ran.out, ran.err) == (0, b"out\n", b"err\n")
        assert (await drill.ssh("web-01", "exit 3")).status == 3
        assert (await drill.ssh("web-01", "sleep 9999")).status == 124
        ran = await drill.ssh("-T", "web-01", data=b"ls\n")
        assert ran.status == 255 and b"scripted host" in ran.err
        calls = await drill.returned(4)
    assert [call.outcome for call in calls] == ["ran", "ran", "timed_out", "refused"]
