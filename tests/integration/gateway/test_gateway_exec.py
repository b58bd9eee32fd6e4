"""Commands through the gateway, by the real OpenSSH client on real hosts."""

from __future__ import annotations

import asyncio
import logging
import os

import asyncssh
import pytest
from tests.integration.gateway.conftest import Drill

pytestmark = pytest.mark.sandbox


async def test_a_command_runs_and_is_recorded(drill: Drill) -> None:
    """[W2.3] Command, host, user, times, exit status, output."""
    ran = await drill.ssh("web-01", "hostname; echo err >&2; exit 7")
    assert (ran.status, ran.out, ran.err) == (7, b"web-01\n", b"err\n")
    call = await drill.only_call()
    assert call.kind == "shell" and call.tool == "ssh" and call.witness == "gateway"
    assert call.arguments == {"command": "hostname; echo err >&2; exit 7", "user": "root"}
    assert (call.outcome, call.exit_code, call.output) == ("ran", 7, "web-01\nerr")
    assert call.started_at and call.ended_at and call.started_at <= call.ended_at
    assert drill.gateway.touched == ("web-01",)


async def test_one_task_for_each_host_that_ends_with_the_job(drill: Drill) -> None:
    """[W2.2]"""
    await drill.ssh("db-01", "true")
    await drill.ssh("web-01", "true")
    await drill.ssh("db-01", "false")
    await drill.returned(2, "db-01")
    await drill.gateway.close("completed", "the agent ended")
    tasks = drill.record().tasks
    assert [(task.host, len(task.tool_calls), task.status) for task in tasks] == [
        ("db-01", 2, "completed"),
        ("web-01", 1, "completed"),
    ]
    assert all(task.ended_at and task.stop_reason == "the agent ended" for task in tasks)


async def test_it_is_recorded_before_the_host_sees_it(drill: Drill) -> None:
    """[W2.1] A command that never ends is in the record while it runs."""
    going = asyncio.create_task(drill.ssh("web-01", "touch /tmp/begun; sleep 4711"))
    await drill.on_host("until test -e /tmp/begun; do sleep 0.02; done")
    assert [call.command for call in drill.calls()] == ["touch /tmp/begun; sleep 4711"]
    await drill.gateway.close("cancelled")
    assert (await going).status == 255
    assert drill.calls()[0].outcome == "failed"
    assert "closed" in (drill.calls()[0].output or "")
    assert await drill.on_host("sleep 0.2; pgrep -xf 'sleep 4711' || echo none") == "none"


@pytest.mark.parametrize("command", [b"printf \\\\377 | od -c", "echo é 日本 '\"$'".encode(), b" "])
async def test_the_text_is_kept_as_given(drill: Drill, command: bytes) -> None:
    await drill.ssh("web-01", command.decode())
    assert (await drill.only_call()).command == command.decode()


async def test_bytes_that_are_no_text_reach_the_host(drill: Drill) -> None:
    """Undecodable bytes are replaced in the record, and only there."""
    process = await asyncio.create_subprocess_exec(
        "ssh", "-F", drill.config, "web-01",
        b"printf '\xff%%s\\n' | od -An -tx1; echo -n '%d\\\\\n'",
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate()
    assert out == b" ff 25 73 0a\n%d\\\\\n"
    assert (await drill.only_call()).command.startswith("printf '\ufffd%%s\\n'")


async def test_bytes_pass_both_ways_as_they_are(drill: Drill) -> None:
    data = bytes(range(256)) * 4096
    ran = await drill.ssh("web-01", "cat; printf '\\377\\0' >&2", data=data)
    assert (ran.out, ran.err, ran.status) == (data, b"\xff\0", 0)


async def test_half_close(drill: Drill) -> None:
    """The end of input reaches the command, whose output still arrives."""
    ran = await drill.ssh("web-01", "wc -c; sleep 0.2; echo late", data=b"12345")
    assert ran.out == b"5\nlate\n"


async def test_an_exit_signal_is_exact(drill: Drill) -> None:
    """[W2.3]"""
    ran = await drill.ssh("-v", "web-01", "kill -TERM $$")
    assert ran.status == 255 and b"exit-signal" in ran.err
    call = await drill.only_call()
    assert (call.outcome, call.exit_code) == ("ran", 143)


async def test_long_output_is_passed_whole_and_kept_in_part(drill: Drill) -> None:
    """[W2.3]"""
    ran = await drill.ssh("web-01", "echo head; head -c 20000000 /dev/zero | tr '\\0' x; echo tail")
    assert len(ran.out) == 20_000_010
    output = (await drill.only_call()).output or ""
    assert output.startswith("head\nxxx") and output.endswith("xtail")
    assert "bytes left out]" in output and len(output) < 300_000


async def test_who_does_not_read_holds_the_command_up(drill: Drill) -> None:
    """Back-pressure: nothing of what nobody reads is kept here."""
    ours, theirs = os.pipe()
    process = await asyncio.create_subprocess_exec(
        "ssh", "-F", drill.config, "web-01", "yes | tee /dev/null",
        stdin=asyncio.subprocess.DEVNULL, stdout=theirs,
    )  # fmt: skip
    try:
        await asyncio.sleep(2)
        first = await drill.on_host("grep rchar /proc/$(pgrep -x tee)/io")
        await asyncio.sleep(0.5)
        assert await drill.on_host("grep rchar /proc/$(pgrep -x tee)/io") == first
        assert int(first.split()[1]) < 16 * 1024 * 1024
    finally:
        process.kill()
        await process.wait()
        os.close(ours)
        os.close(theirs)


async def test_only_the_language_is_taken_from_the_environment(drill: Drill) -> None:
    """[W1.5]"""
    ran = await drill.ssh(
        "-o", "SetEnv=LC_X=1 BASH_ENV=/tmp/x OPSDRILL_X=2 PATH=/x LD_PRELOAD=/x",
        "web-01", "env | grep -E '^(LC_X|BASH_ENV|OPSDRILL|PATH|LD)' | sort",
    )  # fmt: skip
    lines = ran.out.decode().splitlines()
    assert lines[0] == "LC_X=1" and lines[1].startswith("PATH=/usr") and len(lines) == 2


async def test_a_hundred_connections_at_once(drill: Drill) -> None:
    meet = (
        "touch /tmp/m.{0}; until test $(ls /tmp/m.* | wc -l) -ge 100; do sleep 0.3; done; echo {0}"
    )
    ran = await asyncio.gather(
        *(drill.ssh("web-01", meet.format(number), seconds=240) for number in range(100))
    )
    assert [one.out for one in ran] == [b"%d\n" % number for number in range(100)]
    calls = await drill.returned(100)
    assert len(calls) == 100 and {call.exit_code for call in calls} == {0}


async def test_new_keys_while_bytes_pass(drill: Drill) -> None:
    """Rekeying, asked for by the client again and again."""
    data = os.urandom(4_000_000)
    ran = await drill.ssh("-o", "RekeyLimit=256K", "web-01", "cat", data=data)
    assert ran.out == data


async def test_our_logs_get_nothing_of_the_agent(
    drill: Drill, caplog: pytest.LogCaptureFixture
) -> None:
    """Escapes and all else that a client sends are data of the record, and of nothing else."""
    asyncssh.set_debug_level(2)
    try:
        with caplog.at_level(logging.DEBUG):
            ran = await drill.ssh("-l", "root", "web-01", "printf '\\033]0;owned\\a' # o\033wned")
            await drill.ssh("-l", "owned", "-o", "SetEnv=LC_OWNED=owned", "web-01", "true")
            await drill.ssh("-W", "owned:1", "web-01")
    finally:
        asyncssh.set_debug_level(1)
    assert ran.out == b"\033]0;owned\a"
    assert "owned" not in caplog.text
    assert drill.calls()[0].command == "printf '\\033]0;owned\\a' # o\033wned"


async def test_a_multiplexed_client(drill: Drill) -> None:
    """Many commands over one connection of OpenSSH's own."""
    master = ("-o", "ControlMaster=auto", "-o", f"ControlPath={drill.folder}/m", "-o")
    ran = await asyncio.gather(
        *(drill.ssh(*master, "ControlPersist=5", "web-01", f"echo {one}") for one in range(10))
    )
    assert [one.out for one in ran] == [b"%d\n" % one for one in range(10)]
    await drill.ssh(*master, "ControlPersist=5", "-O", "exit", "web-01")
