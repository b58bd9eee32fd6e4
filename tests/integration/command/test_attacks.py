"""What a command agent may try against the machine, the run and other runs; none of it works."""

from __future__ import annotations

import os
import re
import shlex
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.command_runs import Range, drill, opened_range

from opsdrill.model.run import LabChoice

pytestmark = pytest.mark.sandbox

OTHERS = r"""
import os, re, socket, subprocess, sys
own = {os.environ["OPSDRILL_TICKET_URL"].split(":")[2].split("/")[0]}
own |= set(re.findall(r"Port (\d+)", open(os.environ["OPSDRILL_SSH_CONFIG"]).read()))
found = set()
for line in open("/proc/net/tcp").read().splitlines()[1:]:
    words = line.split()
    address, port = words[1].split(":")
    if words[3] == "0A" and address == "0100007F":
        found.add(str(int(port, 16)))
for port in sorted(found - own):
    ssh = ["ssh", "-F", "/dev/null", "-p", port, "-i", os.environ["OPSDRILL_SSH_KEY"],
           "-o", "StrictHostKeyChecking=no", "-o", "BatchMode=yes", "-o", "ConnectTimeout=3",
           "root@127.0.0.1", "echo", "inside"]
    done = subprocess.run(ssh, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
    print("ssh", done.stdout, "denied" if "Permission denied" in done.stderr else "no ssh")
    try:
        other = socket.create_connection(("127.0.0.1", int(port)), 3)
    except OSError:
        continue  # of something else on this machine, which is over
    with other:
        other.settimeout(3)
        token = os.environ["OPSDRILL_TICKET_TOKEN"]
        other.sendall(f"GET /ticket HTTP/1.1\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        try:
            print("http", other.recv(12))
        except OSError:
            pass
"""


def sh(script: str) -> str:
    return f"bash -c {shlex.quote(script)}"


@pytest.fixture
async def grounds(tmp_path: Path) -> AsyncIterator[Range]:
    async with opened_range(tmp_path / "home") as made:
        yield made


async def test_rules_store_labs_and_other_runs_cannot_be_read(
    grounds: Range, tmp_path: Path
) -> None:
    """Though everybody of this machine may read them."""
    lab = tmp_path / "labs"
    scenario = tmp_path / "scenario"
    for folder in (lab, scenario):
        folder.mkdir()
        (folder / "marked-file.yaml").write_text("run: grep -qx good /etc/app.conf\n")
    (grounds.home / "agents" / "r-other").mkdir(parents=True)
    (grounds.home / "agents" / "r-other" / "marked-file.yaml").write_text("x")
    for place in (tmp_path, *tmp_path.rglob("*")):
        place.chmod(0o755 if place.is_dir() else 0o644)
    script = (
        f"for place in {tmp_path} {grounds.home}/store.db {lab} {scenario}/marked-file.yaml;"
        " do cat $place; ls $place; done;"
        "find / -xdev '(' -name store.db -o -name 'marked-file*' -o -name scenario.yaml ')';"
        "find / -name scenario.yaml 2>/dev/null; grep -rl 'qx good' /work /tmp /run /home /var; :"
    )
    run = drill(sh(script)).model_copy(
        update={
            "scenario_folder": str(scenario),
            "lab": LabChoice(name="sandbox", driver="sandbox", folder=str(lab)),
        }
    )
    [came] = await grounds.drill(run)
    assert came.out == ""
    assert came.err.count("No such file or directory") == 8


async def test_no_process_of_ours_and_no_host_is_in_sight(grounds: Range) -> None:
    """Entering a sandbox past the gateway: `nsenter`, `/proc`, debugging."""
    script = (
        "ssh app-01 'sleep 5' & sleep 0.5; ls -d /proc/[0-9]* | wc -l;"
        "for pid in $(seq 1 400); do for kind in mnt pid net user; do"
        " readlink /proc/$pid/ns/$kind; done; done 2>/dev/null | sort -u | wc -l;"
        "nsenter -t 1 -a id; nsenter --mount=/proc/1/ns/mnt id; ls /proc/1/root/ /proc/1/cwd/;"
        "cat /proc/1/environ /proc/1/maps; cat /etc/app.conf; mount -t proc none /proc; kill %1; :"
    )
    [came] = await grounds.drill(drill(sh(script)))
    processes, namespaces, *rest = came.out.splitlines()
    assert int(processes) < 10 and int(namespaces) == 4
    assert rest == []
    assert "Permission denied" in came.err


async def test_another_run_lets_nobody_in(grounds: Range) -> None:
    """Another run's host by this run's key, another run's ticket by this run's token."""
    both = [
        drill(sh(f"sleep 1; timeout 25 python3 -c {shlex.quote(OTHERS)}; sleep 3"), setup=[])
        for _ in range(2)
    ]
    for came in await grounds.drill(*both):
        assert "ssh  denied" in came.out, came.err
        assert "http b'HTTP/1.1 401'" in came.out
        assert "inside" not in came.out
        assert came.calls == [] and came.record.ticket.messages == ()


async def test_after_the_job_nothing_listens(grounds: Range) -> None:
    script = "grep Port ~/.ssh/config; echo $OPSDRILL_TICKET_URL"
    [came] = await grounds.drill(drill(sh(script)))
    ports = [int(port) for port in re.findall(r"(?:Port |:)(\d+)", came.out)]
    assert len(ports) == 2
    for port in ports:
        with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
            pass


async def test_the_key_is_in_nothing_that_is_kept(grounds: Range) -> None:
    script = "cat $OPSDRILL_SSH_KEY; cp $OPSDRILL_SSH_KEY key; ssh app-01 \"echo '$(cat key)'\""
    [came] = await grounds.drill(drill(sh(script)))
    everything = (
        "".join(path.read_text() for path in came.kept.rglob("*") if path.is_file())
        + came.record.model_dump_json()
    )
    assert "BEGIN OPENSSH PRIVATE KEY" not in everything
    assert everything.count("[masked:") >= 3


async def test_a_flood_of_output_and_files_is_bounded(grounds: Range) -> None:
    """One that fills the disk with output."""
    script = (
        "head -c 40M /dev/zero | tr '\\0' y; dd if=/dev/zero of=big bs=1M count=100 2>/dev/null;"
        "for n in $(seq 6000); do echo > f$n; done"
    )
    [came] = await grounds.drill(drill(sh(script)))
    size = sum(path.stat().st_size for path in came.kept.rglob("*") if path.is_file())
    assert size < 16 << 20
    assert len(list((came.kept / "work").iterdir())) <= 5000


async def test_escapes_of_its_output_stay_data(grounds: Range) -> None:
    script = "printf '\\033]0;owned\\007\\033[2J'; opsdrill-ticket post \"$(printf '\\033[2Jhi')\""
    [came] = await grounds.drill(drill(sh(script)))
    [message] = came.record.ticket.messages
    assert message.body == "\x1b[2Jhi"
    assert came.out == "\x1b]0;owned\x07\x1b[2J"


async def test_hundreds_of_processes_end_at_the_limit(grounds: Range) -> None:
    script = (
        "for n in $(seq 300); do (setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 4713; done'"
        " &) ; done; while :; do (setsid sleep 4713 &) ; sleep 0.01; done"
    )
    [came] = await grounds.drill(drill(sh(script), limits={"job_seconds": 4}))
    assert came.record.job is not None and came.record.job.status == "timed_out"
    left = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = place.read_bytes()
        except OSError:
            continue
        if re.search(rb"(?<!\d)4713(?!\d)", line) and place.parent.name != str(os.getpid()):
            left.append(place)
    assert left == []
