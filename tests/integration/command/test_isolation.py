"""A program in a room of its own: what it has, what it cannot see, and that nothing of it stays."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.integration.rooms import Came, ran, room

import opsdrill
from opsdrill.agents.isolation.confined import Confined

pytestmark = pytest.mark.sandbox

STAYS = """
( setsid sh -c 'echo one $$; exec sleep 4711' & ) &
python3 -c '
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("two", flush=True)
        time.sleep(4711)
    os._exit(0)
' &
trap "" TERM HUP INT
sleep 0.5
echo ready
sleep 4711
"""


def still_there() -> list[str]:
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            line = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if re.search(r"(?<!\d)4711(?!\d)", line) and "pytest" not in line:
            found.append(line)
    return found


async def test_it_gets_its_ticket_an_empty_folder_and_its_exit_status() -> None:
    came = await ran(room("cat; pwd; ls -A; echo work > kept.txt; echo oops >&2; exit 7"))
    assert came.ending is not None
    assert (came.ending.status, came.ending.left) == (7, False)
    assert came.said == "the ticket\n/work\n"
    assert bytes(came.err) == b"oops\n"
    assert came.kept["work/kept.txt"] == b"work\n"


async def test_a_program_that_cannot_be_started_says_why() -> None:
    came = await ran(room("", argv=("/usr/bin/no-such-program",)))
    assert came.ending is not None
    assert came.ending.cannot == "No such file or directory"


async def test_it_sees_no_process_but_its_own() -> None:
    came = await ran(room("cat /proc/[0-9]*/cmdline | tr '\\0' ' '; kill -9 1; ls /proc/1/fd"))
    assert "opsdrill" not in came.said and "pytest" not in came.said
    assert b"Permission denied" in bytes(came.err)


async def test_it_sees_no_folder_of_this_machine_but_its_programs(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("secret")
    package = Path(opsdrill.__file__).parent
    places = f"{tmp_path} {package} /root /var/lib /run/docker.sock /sys /home/*"
    came = await ran(room(f"for place in {places}; do ls -d $place 2>/dev/null; done; ls -A ~"))
    assert came.said == "/home/agent\n"


async def test_what_is_hidden_lies_in_no_shown_folder(tmp_path: Path) -> None:
    for name in ("tool/bin", "tool/secret"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "tool/secret/rules.yaml").write_text("x")
    (tmp_path / "tool/bin/run").write_text("#!/bin/sh\necho ran\n")
    (tmp_path / "tool/token").write_text("x")
    tmp_path.chmod(0o755)
    tool = tmp_path / "tool"
    script = f"ls {tool} {tool}/secret; sh {tool}/bin/run; cat {tool}/token; touch {tool}/new"
    script += f"; unshare -Urm umount {tool}/secret; ls {tool}/secret"
    shown, hidden = (str(tool),), (str(tool / "secret"), str(tool / "token"))
    came = await ran(room(script, shown=shown, hidden=hidden))
    assert "ran" in came.said and "rules.yaml" not in came.said
    assert not (tool / "new").exists()


async def test_it_has_no_rights_and_gets_none() -> None:
    came = await ran(room("grep -E '^Cap(Eff|Bnd)|NoNewPrivs' /proc/self/status; cat /etc/shadow"))
    assert came.said.split()[1::2] == ["0" * 16, "0" * 16, "1"]


async def test_its_home_is_where_the_list_of_users_says_so() -> None:
    """OpenSSH takes its settings from there, whatever HOME says."""
    came = await ran(room("getent passwd $(id -u) | cut -d: -f1,6; id -un"))
    assert came.said == "agent:/home/agent\nagent\n"


@pytest.mark.parametrize("isolated", [True, False], ids=["namespaces", "none"])
async def test_what_it_started_ends_with_it(tmp_path: Path, isolated: bool) -> None:
    """Everything it started is ended at the limit, `setsid` and double forks included."""
    came = await ran(room(STAYS, None if isolated else tmp_path), stop_at=b"ready\n")
    assert came.ending is not None and not came.ending.left
    assert {"two", "ready"} <= set(came.said.split())
    assert still_there() == []


@pytest.mark.parametrize("isolated", [True, False], ids=["namespaces", "none"])
async def test_what_it_left_behind_ends_when_it_ends(tmp_path: Path, isolated: bool) -> None:
    script = STAYS.replace("sleep 4711\n", "exit 0\n").replace("trap", ": trap")
    came = await ran(room(script, None if isolated else tmp_path))
    assert came.ending is not None and came.ending.status == 0
    assert still_there() == []


UNSEEN = """
(setsid nohup sleep 4711 >/dev/null 2>&1 &)
nohup sleep 4711 >/dev/null 2>&1 &
sleep 0.5
kill -KILL $PPID
kill -STOP $$
sleep 4711
"""


@pytest.mark.parametrize("isolated", [True, False], ids=["namespaces", "none"])
async def test_who_looks_after_it_is_stopped_or_killed(tmp_path: Path, isolated: bool) -> None:
    """It survives its limit in neither case; without namespaces nobody knows whether all ended."""
    given = room(UNSEEN, None if isolated else tmp_path)
    given.environment["OPSDRILL_TICKET_TOKEN"] = f"token-{os.getpid()}"
    confined = Confined(given, lambda _: None, lambda _: None, lambda _: None)
    running = asyncio.ensure_future(confined.run())
    await asyncio.sleep(2)
    confined.stop()
    async with asyncio.timeout(60):
        ending = await running
    assert ending.left is not isolated
    assert still_there() == []


async def test_a_killed_opsdrill_takes_it_along() -> None:
    """Whoever made the room is killed: nothing of it stays."""
    folder = Path(__file__).parents[3]
    code = (
        f"import sys, asyncio; sys.path.insert(0, {str(folder)!r})\n"
        "from tests.integration.rooms import ran, room\n"
        "from opsdrill.agents.isolation.confined import Confined\n"
        "import os\n"
        f"given = room({STAYS!r})\n"
        "c = Confined(given, lambda part: os.write(1, part), print, lambda stream: None)\n"
        "asyncio.run(c.run())\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while b"ready" not in process.stdout.readline():
            pass
        assert still_there()
        process.kill()
        process.stdout.read()
    for _ in range(100):
        if not still_there():
            break
        os.sched_yield()
        subprocess.run(["sleep", "0.1"], check=True)
    assert still_there() == []


async def test_many_wait_for_nothing_that_others_wait_for() -> None:
    """The threads that all share are free for what is to be checked, however many programs work."""
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))
    stopped: list[Confined] = []
    out: list[bytes] = []

    def take(part: bytes) -> None:
        out.append(part)
        if b"".join(out).count(b"ready") == 4:
            for each in stopped:
                each.stop()

    for _ in range(4):
        given = room("echo ready; sleep 4711")
        stopped.append(Confined(given, take, lambda _: None, lambda _: None))
    async with asyncio.timeout(60):
        endings = await asyncio.gather(*(each.run() for each in stopped))
        await asyncio.to_thread(lambda: None)
    assert [ending.left for ending in endings] == [False] * 4
    assert b"".join(out).count(b"ready") == 4
    assert still_there() == []


async def test_a_full_disk_is_its_own() -> None:
    script = "dd if=/dev/zero of=big bs=1M count=64 2>/dev/null; du -m . | tail -1; echo $?"
    came = await ran(room(script, size=8 << 20))
    assert int(came.said.split()[0]) <= 8


async def test_only_plain_files_are_kept() -> None:
    """A link out of its folder, a pipe, or a file too large is left out, and counted."""
    script = "ln -s /etc/passwd link; mkfifo pipe; echo a > a; truncate -s 100M large; ln -s / root"
    came = await ran(room(script))
    assert [name for name in came.kept if name.startswith("work/")] == ["work/a"]
    assert "left-out/3" in came.kept


async def test_transcripts_are_found_by_their_pattern() -> None:
    script = "mkdir -p ~/.agent/a; echo one > ~/.agent/a/one.jsonl; echo two > two.json"
    patterns = ("/home/agent/.agent/**/*.jsonl", "/work/*.json", "/etc/*.conf")
    came: Came = await ran(room(script, transcripts=patterns))
    assert {name for name in came.kept if name.startswith("transcripts/")} == {
        "transcripts/home/.agent/a/one.jsonl",
        "transcripts/work/two.json",
    }
