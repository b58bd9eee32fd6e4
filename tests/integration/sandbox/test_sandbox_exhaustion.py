"""Hosts that use up what they can reach: they answer or say why not, the machine goes on."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from opsdrill.errors import HostError
from opsdrill.hosts.driver import DriverContext
from opsdrill.hosts.drivers.sandbox.driver import SandboxDriver
from opsdrill.hosts.drivers.sandbox.forkserver.cgroups import own_name, places
from opsdrill.hosts.drivers.sandbox.host import SandboxHost
from opsdrill.hosts.drivers.sandbox.leftovers import remove_leftovers
from opsdrill.model.host import Command, HostAnswer
from opsdrill.model.scenario import HostSpec

pytestmark = pytest.mark.sandbox

ONE = [HostSpec(name="web-01")]


async def run(host: SandboxHost, text: str, timeout: float = 30.0) -> HostAnswer:
    return await host.run(Command(run=text, timeout=timeout))


STOP_ALL = b"""
import os, signal
for _ in range(8):
    if os.fork() == 0:
        os.setsid()
        break
while True:
    try: os.kill(-1, signal.SIGSTOP)
    except OSError: pass
"""


async def test_processes_that_stop_all_others_are_killed(driver: SandboxDriver) -> None:
    """Past its time limit a command is killed with every descendant, whatever those do to others.

    What kills them stands outside, where no `kill -STOP -1` reaches it.
    """
    async with await driver.provision("stop", ONE) as fleet:
        host = fleet.hosts["web-01"]
        await host.put("/tmp/stop.py", STOP_ALL)
        answer = await run(host, "python3 /tmp/stop.py", 1.0)
        assert answer.timed_out
        assert "could not be killed" not in (answer.reason or "")
        assert (await run(host, "pgrep -cf stop.py", 10.0)).stdout == "0\n"


FILL_PROCESSES = b"""
import os, time
while True:
    try:
        if os.fork() == 0: time.sleep(10000)
    except OSError: time.sleep(0.005)
"""


async def test_a_host_full_of_processes_answers(host: SandboxHost) -> None:
    """Where an agent left no room for processes, a command that needs none more still answers."""
    await host.put("/tmp/fill.py", FILL_PROCESSES)
    await run(host, "setsid python3 /tmp/fill.py >/dev/null 2>&1 & sleep 0.7")
    for _ in range(20):
        answer = await run(host, "echo on")
        assert (answer.exit_code, answer.stdout) == (0, "on\n"), answer
    answer = await run(host, "sleep 99 & sleep 99", 1.0)
    assert answer.timed_out or answer.exit_code not in (None, 0)


LONG_PATHS = b"""
import os
folder = os.open("/srv", 0)
for _ in range(14):
    os.mkdir(b"\\x01" * 250, dir_fd=folder)
    folder = os.open(b"\\x01" * 250, 0, dir_fd=folder)
try:
    for number in range(10**6):
        name = b"\\x01" * 200 + str(number).encode()
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=folder))
except OSError as error:
    print(error.strerror)
"""


async def test_the_longest_of_paths_are_not_listed(host: SandboxHost) -> None:
    """Changed files are bounded in bytes, too; a host with more is said to have too many."""
    await host.mark()
    await host.put("/tmp/long.py", LONG_PATHS)
    answer = await run(host, "python3 /tmp/long.py")
    assert answer.stdout == "No space left on device\n"
    with pytest.raises(HostError, match="more files than can be listed"):
        await host.changed()
    await run(host, "rm -rf /srv/*")
    changes = await host.changed()
    assert changes is not None
    assert [change.path for change in changes] == ["/tmp/long.py"]


async def test_terminals_are_bounded(host: SandboxHost) -> None:
    """One host cannot take the pseudo-terminals of all others."""
    code = (
        "import os\n"
        "held = []\n"
        "try:\n"
        "    while True: held.append(os.open('/dev/ptmx', os.O_RDWR))\n"
        "except OSError as error: print(len(held) <= 64, error.strerror)"
    )
    assert (await run(host, f'python3 -c "{code}"')).stdout == "True No space left on device\n"


async def test_watchers_of_files_are_bounded(host: SandboxHost) -> None:
    """A host's root, who counts as the user outside, leaves that user inotify(7)."""
    code = (
        "import ctypes, time\n"
        "libc = ctypes.CDLL(None)\n"
        "while libc.inotify_init() >= 0: pass\n"
        "open('/tmp/full', 'w').close(); time.sleep(100)"
    )
    text = f'python3 -c "{code}" >/dev/null 2>&1 & until [ -e /tmp/full ]; do sleep 0.05; done'
    assert (await run(host, text)).exit_code == 0
    watcher = ctypes.CDLL(None, use_errno=True).inotify_init()
    assert watcher >= 0, os.strerror(ctypes.get_errno())
    os.close(watcher)


IN_FLIGHT = b"""
import array, socket, time
held = []
try:
    while True:
        near, far = socket.socketpair()
        held.append((near, far))
        near.setblocking(False)
        many = array.array("i", [near.fileno()] * 250)
        for _ in range(8):
            near.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, many)])
except OSError:
    open("/tmp/full", "w").close()
time.sleep(100)
"""


async def test_descriptors_on_their_way_do_not_keep_ours(host: SandboxHost) -> None:
    """A host that has as many descriptors in sockets as it may does not cut us off (unix(7))."""
    await host.put("/tmp/flight.py", IN_FLIGHT)
    text = "ulimit -n 4096; python3 /tmp/flight.py & until [ -e /tmp/full ]; do sleep 0.05; done"
    await run(host, f"({text}) >/dev/null 2>&1")
    assert (await run(host, "echo on")).stdout == "on\n"
    await host.put("/tmp/file", b"x")


STOPPED_SERVER = """
import asyncio, os, signal, sys
from pathlib import Path
from opsdrill.errors import HostError
from opsdrill.hosts.driver import DriverContext
from opsdrill.hosts.drivers.sandbox.driver import SandboxDriver
from opsdrill.model.scenario import HostSpec

async def main():
    driver = SandboxDriver(DriverContext(Path(sys.argv[1])))
    await driver.provision("stopped", [HostSpec(name="web-01")])
    server = (await driver._linked()).pid
    os.kill(server, signal.SIGSTOP)
    print(server, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def test_a_stopped_fork_server_ends_with_its_owner(tmp_path: Path) -> None:
    """A killed process leaves no host, also when its fork server was stopped before."""
    done = subprocess.run(
        [sys.executable, "-c", STOPPED_SERVER, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    server = Path("/proc") / done.stdout.strip()
    end = time.monotonic() + 20
    while _lives(server) and time.monotonic() < end:
        time.sleep(0.02)
    assert not _lives(server)


def _lives(process: Path) -> bool:
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


async def test_a_full_memory_ends_no_wait(tmp_path: Path) -> None:
    """Files may fill a host's memory bound; commands then fail or are not answered, in time."""
    driver = SandboxDriver(DriverContext(tmp_path, {"size": "64M", "memory": "32M"}))
    try:
        async with await driver.provision("full", ONE) as fleet:
            host = fleet.hosts["web-01"]
            async with asyncio.timeout(90):
                await run(host, "cat /dev/zero > /fill; echo full", 5.0)
                for _ in range(3):
                    answer = await run(host, "echo on", 3.0)
                    assert answer.stdout == "on\n" or answer.exit_code != 0, answer
    finally:
        await driver.close()


async def test_busy_processes_hold_up_no_kill(tmp_path: Path) -> None:
    """Hundreds of processes that want all processors are killed in time; the host answers."""
    busy = SandboxDriver(DriverContext(tmp_path, {"size": "16M", "processes": "400"}))
    try:
        async with await busy.provision("busy", ONE) as fleet:
            host = fleet.hosts["web-01"]
            loop = "for i in $(seq 380); do setsid sh -c 'while :; do :; done' & done; sleep 999"
            answer = await run(host, loop, 3.0)
            assert answer.timed_out
            assert "could not be killed" not in (answer.reason or "")
            assert (await run(host, "pgrep -xc sh", 10.0)).stdout.strip() == "0"
    finally:
        await busy.close()


def test_groups_of_others_are_left_alone() -> None:
    """Only groups named by a sandbox that is no more are left-overs."""
    folders = [Path(place.folder) for place in places()]
    if not folders:
        pytest.skip("needs root and control groups")
    others = [folders[0] / name for name in ("opsdrill-x", "opsdrill-1-2", own_name("9"))]
    dead = folders[0] / "opsdrill-999999999-1-1"
    try:
        for folder in (*others, dead):
            folder.mkdir()
        assert f"removed the control group {dead}" in remove_leftovers()
        assert not dead.exists()
        assert all(folder.exists() for folder in others)
    finally:
        for folder in (*others, dead):
            if folder.exists():
                folder.rmdir()


async def test_output_held_open_takes_no_process_of_ours(driver: SandboxDriver) -> None:
    """Commands that leave writers behind, which go on running, leave no process outside."""
    async with await driver.provision("held", ONE) as fleet:
        host = fleet.hosts["web-01"]
        for number in range(20):
            text = f"while echo x; do echo x >&2; : > /tmp/{number}; sleep 0.1; done & exit 4"
            assert (await run(host, text)).exit_code == 4
        await run(host, "rm -f /tmp/*; sleep 1.5")
        assert (await run(host, "ls /tmp | wc -l")).stdout == "20\n"
        server = (await driver._linked()).pid
        assert _ours_below(server) < 8


def _ours_below(server: int) -> int:
    """How many processes the fork server has that are no command's: forks of its own name."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        try:
            name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        if name == "hosts":
            parents[int(folder.name)] = int(rest.split()[1])
    found = {server}
    while below := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= below
    return len(found) - 1
