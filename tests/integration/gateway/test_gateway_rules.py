"""What binds commands on their way through the gateway: what is forbidden, and the time limit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.integration.gateway.conftest import Drill, opened
from tests.integration.gateway.test_gateway_shells import keyboard, ready

from opsdrill.hosts.driver import Fleet
from opsdrill.model.job import Coverage, Seen

pytestmark = pytest.mark.sandbox

WHOLE = Coverage(default=Seen(state="whole"))
DENY = (r"\b(reboot|mkfs)\b", r"rm\s+-rf\s+/\s*$")
WHY = r"forbidden by the operator: \b(reboot|mkfs)\b"
TICKET = b"# The disk is full\n\nPlease mend it.\n"


@pytest_asyncio.fixture
async def guarded(fleet: Fleet, tmp_path: Path) -> AsyncIterator[Drill]:
    """A gateway that forbids some, and gives a command two seconds."""
    async with opened(
        fleet.hosts, tmp_path, deny=DENY, command_seconds=2, known_input=TICKET
    ) as made:
        yield made


async def slept(drill: Drill, seconds: int) -> str:
    return await drill.on_host(f"sleep 0.2; pgrep -xf 'sleep {seconds}' || echo none")


async def test_a_forbidden_command_is_refused_and_recorded(guarded: Drill) -> None:
    """[W4.1] The agent sees a line of its own and a status; nothing of it reaches the host."""
    ran = await guarded.ssh("web-01", "touch /tmp/begun; reboot")
    assert (ran.status, ran.out) == (126, b"")
    assert ran.err.decode() == f"opsdrill: refused, not run: {WHY}\n"
    call = await guarded.only_call()
    assert (call.kind, call.command) == ("shell", "touch /tmp/begun; reboot")
    assert (call.outcome, call.exit_code, call.output) == ("refused", None, WHY)
    assert await guarded.on_host("ls /tmp/begun 2>/dev/null || echo none") == "none"
    assert guarded.gateway.coverage(WHOLE) == WHOLE
    assert (await guarded.ssh("web-01", "rm -rf /")).status == 126
    assert (await guarded.ssh("web-01", "echo rebooted")).status == 0


async def test_forbidden_lines_of_a_script_are_left_out(guarded: Drill) -> None:
    """[W4.2] By way of a login shell, and of a shell as a command."""
    script = b"echo one\nreboot --force\necho last"
    for words in (("web-01",), ("web-01", "bash", "-s")):
        ran = await guarded.ssh("-T", *words, data=script)
        assert ran.out == b"one\nlast\n"
        assert ran.err.decode() == f"opsdrill: refused, not run: {WHY}\n"
    calls = await guarded.returned(8)
    assert [(call.command, call.outcome) for call in calls if call.kind == "shell"] == [
        ("echo one", "ran"), ("reboot --force", "refused"), ("echo last", "ran"),
        ("bash -s", "ran"),
        ("echo one", "ran"), ("reboot --force", "refused"), ("echo last", "ran"),
    ]  # fmt: skip


async def test_a_forbidden_line_at_a_terminal_is_deleted(guarded: Drill) -> None:
    """[W4.2] Nothing runs, that is said, and the shell is as good as before."""
    async with keyboard(guarded) as keys:
        await ready(keys)
        keys.type("echo x >/tmp/begun; rebo")
        keys.type("ot\r")
        # A prompt may come before our line: these are two streams.
        assert "forbidden by the operator" in await keys.until("mkfs)")
        keys.type("echo o''ne\r")
        await keys.until("one\r")
        await keys.until("READY>")
        keys.type("re\\\rboot\r")
        await keys.until("mkfs)")
        keys.type("echo t''wo\r")
        await keys.until("two\r")
        keys.type("exit\r")
        await keys.until("closed")
    calls = await guarded.returned(7)
    assert [(call.command, call.outcome) for call in calls[2:]] == [
        ("echo x >/tmp/begun; reboot", "refused"),
        ("echo o''ne", "ran"),
        ("re\\\nboot", "refused"),
        ("echo t''wo", "ran"),
        ("exit", "ran"),
    ]
    assert await guarded.on_host("ls /tmp/begun 2>/dev/null || echo none") == "none"


async def test_a_command_is_killed_at_its_limit_with_all_it_started(guarded: Drill) -> None:
    """[W5.1] `setsid` and signals that are ignored included; the agent is told."""
    text = "trap '' TERM HUP; (setsid sleep 4721 &); echo begun; sleep 4721; echo not reached"
    ran = await guarded.ssh("web-01", text)
    assert (ran.status, ran.out) == (124, b"begun\n")
    why = "killed after 2 s with everything it started"
    assert ran.err.decode() == f"opsdrill: {why}: that is the time limit of a command\n"
    call = await guarded.only_call()
    assert (call.outcome, call.exit_code) == ("timed_out", None)
    assert call.output == f"begun\n{why}"
    assert await slept(guarded, 4721) == "none"


async def test_closing_its_output_gives_a_command_no_more_time(guarded: Drill) -> None:
    """[W5.1]"""
    ran = await guarded.ssh("web-01", "exec >&- 2>&-; sleep 4722")
    assert ran.status == 124
    assert await slept(guarded, 4722) == "none"


async def test_what_ends_in_time_leaves_its_background_alone(guarded: Drill) -> None:
    """[W5.1] A daemon that an agent starts is what it was asked for."""
    ran = await guarded.ssh("web-01", "setsid sleep 4723 >/dev/null 2>&1 </dev/null &")
    assert ran.status == 0
    await guarded.ssh("web-01", "sleep 1")
    await guarded.gateway.close()
    assert (await guarded.on_host("pgrep -xf 'sleep 4723' | wc -l")) == "1"


async def test_a_script_has_its_time_from_the_end_of_its_input(guarded: Drill) -> None:
    """[W5.2] A shell whose input goes on lasts; one that has read all of it is a command."""
    ran = await guarded.ssh("-T", "web-01", "bash", data=b"echo one\nsleep 4724\necho two\n")
    assert (ran.status, ran.out) == (124, b"one\n")
    assert await slept(guarded, 4724) == "none"
    calls = await guarded.returned(4)
    assert calls[0].outcome == "timed_out"


async def test_a_shell_at_a_terminal_lasts_as_long_as_the_job(guarded: Drill) -> None:
    """[W5.2]"""
    async with keyboard(guarded) as keys:
        await ready(keys)
        keys.type("sleep 3; echo a''wake\r")
        await keys.until("awake")


async def test_at_the_end_of_the_job_a_running_command_is_killed(guarded: Drill) -> None:
    """[W1.2] Also one that heeds no hang-up."""
    text = "trap '' HUP; (setsid sleep 4725 &); touch /tmp/begun; sleep 4725"
    going = asyncio.create_task(guarded.ssh("web-01", text))
    await guarded.on_host("until test -e /tmp/begun; do sleep 0.02; done")
    await guarded.gateway.close()
    assert (await going).status == 255
    assert await slept(guarded, 4725) == "none"


async def test_input_that_is_not_seen_is_a_gap_and_the_ticket_is_none(guarded: Drill) -> None:
    """[W3.3] A copy of a shell by any name."""
    await guarded.ssh("web-01", "cp /bin/bash /tmp/q")
    assert (await guarded.ssh("web-01", "/tmp/q; true", data=TICKET)).status == 0
    assert guarded.gateway.coverage(WHOLE) == WHOLE
    ran = await guarded.ssh("web-01", "/tmp/q", data=b"echo hidden; reboot --help | wc -l\n")
    assert ran.out.startswith(b"hidden")
    seen = guarded.gateway.coverage(WHOLE).of("executed_commands")
    assert seen.state == "partial" and "given input" in (seen.why or "")


async def test_what_a_pattern_does_not_see(guarded: Drill) -> None:
    """[W3.6, W4.5] A script that was copied and then run is one command, by its name."""
    (guarded.folder / "x.sh").write_text("reboot() { echo done; }; reboot\n")
    assert (await guarded.run("scp", "x.sh", "web-01:/tmp/x.sh")).status == 0
    assert (await guarded.ssh("web-01", "sh /tmp/x.sh")).out == b"done\n"
    assert guarded.calls()[-1].command == "sh /tmp/x.sh"
    assert guarded.gateway.coverage(WHOLE) == WHOLE


async def test_a_pattern_that_takes_too_long_refuses(fleet: Fleet, tmp_path: Path) -> None:
    """[W4.4]"""
    async with opened(fleet.hosts, tmp_path, deny=(r"(?=(a+)+b)x",)) as drill:
        ran = await drill.ssh("web-01", f"echo {'a' * 40}")
        assert ran.status == 126 and b"took too long" in ran.err
        assert (await drill.only_call()).outcome == "refused"
        assert (await drill.ssh("web-01", "echo b")).out == b"b\n"


@pytest.mark.parametrize("script", [b":\n" * 60_000, b"x" * (9 << 20)])
async def test_a_script_without_end_is_cut_off(drill: Drill, script: bytes) -> None:
    """[W1.4] What is typed into one shell is kept, so it is bounded."""
    ran = await drill.ssh("-T", "web-01", data=script)
    assert ran.status == 255 and b"more than is recorded" in ran.err
    assert len(drill.calls()) <= 50_001


async def test_a_shell_without_a_line_editor_deletes_the_line_too(guarded: Drill) -> None:
    """[W4.2] There it is the terminal that has the line."""
    async with keyboard(guarded, "-t", "web-01", "sh") as keys:
        await ready(keys)
        keys.type("echo x >/tmp/begun; reboot\r")
        await keys.until("mkfs)")
        keys.type("echo o''ne\r")
        await keys.until("one\r")
        keys.type("exit\r")
        await keys.until("closed")
    assert await guarded.on_host("ls /tmp/begun 2>/dev/null || echo none") == "none"
    told = [(call.command, call.outcome) for call in guarded.calls()]
    assert ("echo x >/tmp/begun; reboot", "refused") in told and ("echo o''ne", "ran") in told


async def test_what_is_typed_ahead_of_a_program_that_runs_is_deleted(guarded: Drill) -> None:
    """[W4.2] And the program is left alone."""
    async with keyboard(guarded) as keys:
        await ready(keys)
        keys.type("sleep 2; echo a''wake\r")
        await asyncio.sleep(0.5)
        keys.type("reboot\r")
        await keys.until("mkfs)")
        await keys.until("awake\r")
        keys.type("echo o''ne\r")
        await keys.until("one\r")
