"""Interactive shells through the gateway, typed into by way of a terminal and the real client."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import signal
import struct
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.integration.gateway.conftest import Drill

from opsdrill.model.job import Coverage, Seen

pytestmark = pytest.mark.sandbox

WHOLE = Coverage(default=Seen(state="whole"))


class Keyboard:
    """A terminal with `ssh` in it."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self.seen = b""

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    async def until(self, text: str, seconds: float = 15) -> str:
        """What came up to a text, which is then over."""
        async with asyncio.timeout(seconds):
            while (at := self.seen.find(text.encode())) < 0:
                try:
                    self.seen += os.read(self._terminal, 65536)
                except BlockingIOError:
                    await asyncio.sleep(0.02)
                except OSError:
                    raise AssertionError(self.seen) from None
        found, self.seen = self.seen[:at], self.seen[at + len(text.encode()) :]
        return found.decode(errors="replace")

    async def line(self, keys: str) -> str:
        """Type a line, wait for the next prompt."""
        self.type(keys)
        return await self.until("READY>")

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


@asynccontextmanager
async def keyboard(drill: Drill, *words: str) -> AsyncIterator[Keyboard]:
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    made = Keyboard(ours)
    made.resize(100, 30)
    process = await asyncio.create_subprocess_exec(
        "ssh", "-F", str(drill.config), *(words or ("web-01",)),
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0),
        env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    os.close(theirs)
    try:
        yield made
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        await process.wait()
        os.close(ours)


async def ready(keys: Keyboard) -> None:
    keys.type("PS1='READ''Y>'\r")
    await keys.until("READY>")


def commands(drill: Drill) -> list[str]:
    return [call.command for call in drill.calls() if call.kind == "shell"][1:]


async def test_lines_are_shell_calls(drill: Drill) -> None:
    """[W2.4] Typed, edited, interrupted: what the shell ran, with its exit status."""
    async with keyboard(drill) as keys:
        await ready(keys)
        await keys.line("echo one\r")
        await keys.line("fallse\x7f\x7f\x7f\x7flse\r")
        await keys.line("rm -rf /nothing\x03")
        await keys.line("wrong words\x15true\r")
        await keys.line("\r")
        keys.type("exit 3\r")
        await keys.until("closed")
    calls = await drill.returned(6)
    assert commands(drill) == ["echo one", "false", "true", "exit 3"]
    shell = [call for call in calls if call.kind == "shell"][1:]
    assert [call.exit_code for call in shell[:3]] == [0, 1, 0]
    assert "one" in (shell[0].output or "")
    assert calls[0].exit_code == 3 and calls[0].kind == "other"
    assert drill.gateway.coverage(WHOLE) == WHOLE


async def test_what_keys_make_is_told_by_bash(drill: Drill) -> None:
    """[W2.4] History, movement, completion, paste, expansion: exact, whatever the keys were."""
    async with keyboard(drill) as keys:
        await ready(keys)
        await keys.line("echo first\r")
        await keys.line("\x1b[A\x7f\x7f\x7f\x7f\x7flast\r")
        await keys.line("cho moved\x01e\r")
        await keys.line("ls /etc/hostn\t\r")
        await keys.line("!echo\r")
        await keys.line("\x1b[200~echo a\necho b\x1b[201~\r")
        await keys.line("echo 'é ü'\r")
        await keys.line("echo back\\\rslash\r")
        keys.type("exit\r")
        await keys.until("closed")
    await drill.returned(9)
    told = [" ".join(command.split()) for command in commands(drill)]
    assert told[:8] == [
        "echo first", "echo last", "echo moved", "ls /etc/hostname", "echo moved",
        "echo a", "echo b", "echo 'é ü'",
    ]  # fmt: skip
    assert told[8:] == ["echo backslash", "exit"]
    assert drill.gateway.coverage(WHOLE) == WHOLE


async def test_a_shell_that_tells_nothing(drill: Drill) -> None:
    """[W3.2] Without bash's word what keys made is not known, and the coverage says so."""
    async with keyboard(drill, "-t", "web-01", "sh") as keys:
        await ready(keys)
        await keys.line("echo one\r")
        seen = drill.gateway.coverage(WHOLE).of("executed_commands")
        assert seen.state == "whole", seen
        await keys.line("echo two\x1b[D\r")
        seen = drill.gateway.coverage(WHOLE).of("executed_commands")
        assert seen.state == "partial" and "shell" in (seen.why or "")
    assert "echo one" in commands(drill)


async def test_a_shown_marker_counts_for_nothing(drill: Drill) -> None:
    """[W3.2]"""
    async with keyboard(drill) as keys:
        await ready(keys)
        assert "7770" in await keys.line("declare -p PROMPT_COMMAND\r")
        assert "PROMPT_COMMAND" not in (await keys.line("env | grep -c ROMPT_\r")).split("\n", 1)[1]
        keys.type("exit\r")
        await keys.until("closed")
    await drill.returned(4)
    assert drill.gateway.coverage(WHOLE).of("executed_commands").state == "partial"


async def test_the_terminal_is_real(drill: Drill) -> None:
    """Size, resize, job control, Ctrl-C, and nothing of ours to be seen."""
    async with keyboard(drill) as keys:
        keys.type("PS1='READ''Y>'\r")
        seen = await keys.until("READY>")
        assert "7770" not in seen and "PROMPT" not in seen
        assert "30 100" in await keys.line("stty size\r")
        keys.resize(70, 20)
        await asyncio.sleep(0.3)
        keys.type("stty size; tty\r")
        await keys.until("20 70")
        assert "/dev/pts/" in await keys.until("READY>")
        keys.type("sleep 4711\r")
        await asyncio.sleep(0.5)
        assert "^C" in await keys.line("\x03")
        assert "130" in await keys.line("echo $?\r")
        keys.type("sleep 4711\r")
        await asyncio.sleep(0.5)
        assert "Stopped" in await keys.line("\x1a")
        assert "sleep 4711" in await keys.line("kill %1; jobs\r")


async def test_lines_of_a_script_on_standard_input(drill: Drill) -> None:
    """[W2.5, W3.2] A shell without a terminal: as login shell, and as a command."""
    script = b"echo one\nfalse\n\necho last"
    for words in (("web-01",), ("web-01", "bash", "-s")):
        ran = await drill.ssh("-T", *words, data=script)
        assert ran.out == b"one\nlast\n"
    calls = await drill.returned(8)
    assert [call.command for call in calls] == [
        "", "echo one", "false", "echo last", "bash -s", "echo one", "false", "echo last",
    ]  # fmt: skip
    assert drill.gateway.coverage(WHOLE) == WHOLE
    await drill.ssh("-T", "web-01", data=b"cat <<X\nrm -rf /\nX\n")
    assert drill.gateway.coverage(WHOLE).of("executed_commands").state == "partial"
