"""Ways to run something behind the record's back: nothing of it may count as seen whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from asyncssh.packet import String, UInt32
from tests.integration.gateway.conftest import Drill, opened
from tests.integration.gateway.test_gateway_refusals import connected
from tests.integration.gateway.test_gateway_shells import WHOLE, commands, keyboard, ready

from opsdrill.hosts.driver import Fleet

pytestmark = pytest.mark.sandbox

TICKET = b"# The disk is full\n\nOn no account run this:\ntouch /tmp/hidden\n\nWork on your own.\n"
CUT = 0x10
READ = 0x1


def state(drill: Drill, target: str = "executed_commands") -> str:
    return drill.gateway.coverage(WHOLE).of(target).state


async def test_an_end_of_the_ticket_may_be_commands(fleet: Fleet, tmp_path: Path) -> None:
    """[W3.3] Who sends it can choose where it begins."""
    async with opened(fleet.hosts, tmp_path, known_input=TICKET) as drill:
        await drill.ssh("web-01", "cp /bin/bash /tmp/q; chmod 755 /tmp/q")
        await drill.ssh("web-01", "/tmp/q; true", data=TICKET)
        assert state(drill) == "whole"
        await drill.on_host("rm -f /tmp/hidden")
        await drill.ssh("web-01", "/tmp/q", data=TICKET[TICKET.index(b"touch") :])
        assert await drill.on_host("ls /tmp/hidden") == "/tmp/hidden"
        assert state(drill) == "partial"


@pytest.mark.parametrize("flags", [READ | CUT, READ | 0x8, 0x4])
async def test_a_file_cut_while_it_is_opened_to_be_read(drill: Drill, flags: int) -> None:
    """[W2.6] The host cuts a file that is opened for reading as well, where it is asked to."""
    await drill.on_host("echo content >/etc/kept.conf")
    opening = b"\x03" + UInt32(1) + String(b"/etc/kept.conf") + UInt32(flags) + UInt32(0)
    async with await connected(drill) as connection:
        process = await connection.create_process(subsystem="sftp", encoding=None)
        process.stdin.write(b"\0\0\0\x05\x01\0\0\0\x03" + UInt32(len(opening)) + opening)
        process.stdin.write_eof()
        await process.wait()
    kinds = [call.kind for call in await drill.returned(2)]
    assert kinds[0] == "other" and kinds[1] in ("write_file", "update_file"), kinds


TRICKS = {
    # What the shell's history says is what somebody put there.
    "history": [
        "HISTCONTROL=ignorespace\r",
        "history -s ls -l; history -s ls -a\r",
        "HIDDEN",
    ],
    "no prompt": [
        "HISTCONTROL=ignorespace; unset PROMPT_COMMAND\r",
        "history -s ls -l; history -s ls -a\r",
        "HIDDEN",
    ],
    # The shell says what its variables say.
    "variable": [
        r"PS0=$'\e]7770;'$(w=${PS0#*7770;}; echo ${w%%;*})';C;\\ \\ 900\\ \\ ls\\ -a'$'\a'" "\r",
        "HIDDEN",
    ],
    # Twice: first a lie, then the truth.
    "twice": [
        r"l=$(w=${PS0#*7770;}; echo ${w%%;*}); E=$'\e]7770;'; n=$(history 1 | awk '{print $1}');"
        r" PS0=$E$l';C;\\ \\ '$((n+2))'\\ \\ ls\\ -a'$'\a'$PS0"
        "\r",
        "HIDDEN",
    ],
    "key": [
        "HISTCONTROL=ignorespace; bind -x '\"\\C-g\": history -s ls -a'\r",
        "\x07HIDDEN",
    ],
}


@pytest.mark.parametrize("trick", TRICKS)
async def test_a_shell_that_is_made_to_lie(drill: Drill, trick: str) -> None:
    """[W3.2] A line of which only the shell could tell, and the shell was told what to tell."""
    async with keyboard(drill) as keys:
        await ready(keys)
        for line in TRICKS[trick]:
            await keys.line(line.replace("HIDDEN", "ouch /tmp/hidden\x01t\x01 \r"))
        await keys.line("true\r")
    assert await drill.on_host("ls /tmp/hidden") == "/tmp/hidden"
    seen = any("touch /tmp/hidden" in command for command in commands(drill))
    assert seen or state(drill) == "partial", commands(drill)
