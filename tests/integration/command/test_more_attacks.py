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


FILES = """
printf -- '-get ../../../../../../etc/hostname up\\n-symlink /proc/self/root /tmp/root\\n' >orders
printf -- '-get /tmp/root/etc/hostname link\\n-get /proc/self/root/etc/hostname own\\n' >>orders
printf -- '-get /etc/hostname whole\\n-get %s marked\\n-get /proc/1/root%s marked\\n' $1 $1 >>orders
sftp -b orders app-01 >/dev/null
scp -O app-01:$1 marked; scp "app-01:/tmp/root$1" marked
cat up link own whole; cat marked
"""


async def test_files_of_this_machine_cannot_be_had_from_a_host(
    grounds: Range, tmp_path: Path
) -> None:
    """Whole paths, `..`, links and `/proc` lead to files of the host, never to ours."""
    marked = tmp_path / "marked"
    marked.write_text("ours\n")
    for place in (tmp_path, marked):
        place.chmod(0o755)
    [came] = await grounds.drill(
        drill(f"bash -c {shlex.quote(FILES)} x {marked}", hosts=["app-01"])
    )
    assert came.out == "app-01\n" * 4, came.err
    assert "ours" not in came.record.model_dump_json()


FORWARDS = """
port=${OPSDRILL_TICKET_URL##*:}; port=${port%%/*}
timeout 5 ssh -W 127.0.0.1:$port app-01
timeout 5 ssh -N -o ExitOnForwardFailure=yes -R 127.0.0.1:0:127.0.0.1:22 app-01
timeout 5 ssh -n -w any app-01 true; timeout 5 ssh -n -X app-01 'echo display=$DISPLAY'
for way in "-L 19731:127.0.0.1:$port" "-D 19731"; do
    timeout 4 ssh -n -N $way app-01 & sleep 1
    curl -s -m 2 http://127.0.0.1:19731/ticket; curl -s -m 2 -x socks5://127.0.0.1:19731 http://127.0.0.1:$port/
    wait
done
ssh -n no-such-host true; ssh -n nobody-here@app-01 true
:
"""


async def test_nothing_leads_from_a_host_to_this_machine(grounds: Range) -> None:
    """[W1.3] Not by any way that `ssh` knows; each is in the record as refused."""
    [came] = await grounds.drill(drill(sh(FORWARDS)))
    assert came.out == "display=\n", came.err
    refused = [call.arguments for call in came.calls if call.outcome == "refused"]
    asked = [
        given["request"] for given in refused if isinstance(given, dict) and "request" in given
    ]
    assert asked.count("direct-tcpip") >= 2 and "tcpip-forward" in asked
    assert came.record.coverage.of("executed_commands").state == "whole"


async def test_a_flooded_ticket_takes_a_bounded_part(grounds: Range) -> None:
    """A thousand messages, four million characters, and no more; what came first stays."""
    script = (
        "head -c 600000 /dev/zero | tr '\\0' x >long;"
        "for n in 1 2 3 4 5 6 7 8 9; do opsdrill-ticket post - <long || break; done; rm long"
    )
    [came] = await grounds.drill(drill(sh(script)))
    assert len(came.record.ticket.messages) == 6
    assert "more was said about this ticket than is kept" in came.err
