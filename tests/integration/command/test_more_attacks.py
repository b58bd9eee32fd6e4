"""More that a command agent may try: with names, with floods, with what it leaves behind."""

from __future__ import annotations

import json
import shlex
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.command.test_two_stories import report
from tests.integration.command_runs import Range, drill, opened_range

from opsdrill.model.agent import AgentSettings

pytestmark = pytest.mark.sandbox

NAMES = r"""
import os
os.mkdir(b"\xff\xfe")
open(b"\xff\xfe/\xc3\x28", "w").close()
open("n\nl\x1b[2J", "w").close()
open("x" * 255, "w").close()
token = "ghp_" + "a1B2c3D4e5F6" * 3
open((token + "-") * 6, "w").close()
open("y" * 200 + token, "w").close()
os.mkdir(token); open(token + "/in", "w").close()
for number in range(40):
    os.mkdir("d" * 200); os.chdir("d" * 200)
    try:
        open("f" * 250, "w").close()
    except OSError:
        pass
"""


def sh(script: str) -> str:
    return f"bash -c {shlex.quote(script)}"


def python(script: str) -> str:
    return sh(f"python3 -c {shlex.quote(script)}")


@pytest.fixture
async def grounds(tmp_path: Path) -> AsyncIterator[Range]:
    async with opened_range(tmp_path / "home") as made:
        yield made


async def test_names_of_files_are_anybodys(grounds: Range) -> None:
    """Bytes that are no text, names and paths as long as they may be, and longer when masked."""
    [came] = await grounds.drill(drill(python(NAMES), setup=[], validation=[]))
    assert came.record.job is not None and came.record.job.status == "completed", came.result


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ('for n in $(seq 25); do printf %s "$1" >$n.json; done', "of 25 transcripts 20 are read"),
        ("printf %s \"$1\" >a.json; sleep 0.1; echo '{' >b.json", "is of no format"),
        ('printf %s "$1" >a.json; truncate -s 300M b.json', "1 transcripts of the agent"),
    ],
    ids=["many", "unreadable", "large"],
)
async def test_a_report_of_which_a_part_is_not_read_is_not_whole(
    grounds: Range, script: str, why: str
) -> None:
    """What an agent called by MCP may stand in the part that was not read."""
    whole = json.loads(report("ssh app-01 true"))
    whole["steps"].append({"step_id": 2, "source": "agent", "message": "Done."})
    told = shlex.quote(json.dumps(whole))
    command = f"bash -c {shlex.quote('ssh app-01 true; ' + script)} x {told}"
    [came] = await grounds.drill(drill(command, AgentSettings(transcript="*.json")))
    assert came.record.reported_by is not None, came.record.coverage
    seen = came.record.coverage.of("agent_messages")
    assert seen.state == "partial" and why in (seen.why or ""), seen
    assert came.record.coverage.of("use_mcp_tool").state != "whole"
