"""Hosts go away: on release, on cancellation, and when OpsDrill is killed at any moment."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from opsdrill.errors import DriverUnavailable, HostUnreachable, ProvisionFailed
from opsdrill.hosts.driver import DriverContext
from opsdrill.hosts.drivers.sandbox.driver import SandboxDriver
from opsdrill.hosts.drivers.sandbox.forkserver.cgroups import leftovers, places
from opsdrill.hosts.drivers.sandbox.options import Options
from opsdrill.model.host import Command
from opsdrill.model.scenario import HostSpec

pytestmark = pytest.mark.sandbox

ONE = [HostSpec(name="web-01")]
THREE = [HostSpec(name=f"web-{number}") for number in range(3)]

PROGRAM = """
import asyncio, sys
from pathlib import Path
from opsdrill.hosts.driver import DriverContext
from opsdrill.hosts.drivers.sandbox.driver import SandboxDriver
from opsdrill.hosts.drivers.sandbox.options import Options
from opsdrill.model.host import Command
from opsdrill.model.scenario import HostSpec

async def main():
    driver = SandboxDriver(DriverContext(Path(sys.argv[1]), {"size": "16M"}))
    link = await driver._linked()
    print(link.pid, flush=True)
    names = [HostSpec(name=f"web-{number}") for number in range(3)]
    fleet = await driver.provision("r", names)
    print("made", flush=True)
    run = "setsid sleep 9999 & (sleep 9999 &) ; sleep 9999"
    await asyncio.gather(*(host.run(Command(run=run)) for host in fleet.hosts.values()))

asyncio.run(main())
"""


def _status(pid: int) -> tuple[int, str] | None:
    """Parent and start time of a living process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else (int(fields[1]), fields[19])


def _descendants(root: int) -> set[tuple[int, str]]:
    """Every process below `root`, with its start time."""
    alive = {
        int(path.name): status
        for path in Path("/proc").iterdir()
        if path.name.isdigit() and (status := _status(int(path.name))) is not None
    }
    found: set[int] = {root}
    while more := {pid for pid, (parent, _) in alive.items() if parent in found} - found:
        found |= more
    return {(pid, alive[pid][1]) for pid in found if pid in alive}


def _descriptors(pid: int) -> int:
    """How many files a process has open; 0 for the fork server of an ordinary user, who is kept
    out of it."""
    try:
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    except PermissionError:
        return 0


def _wait_until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def _idle(server: int) -> bool:
    """The fork server has nobody but, where there are control groups, the next host's spawner."""
    return len(_descendants(server)) <= (2 if places() else 1)


def _nothing_left(processes: set[tuple[int, str]], server: int, *, idle: bool = False) -> None:
    """No such process and no control group; a server that is `idle` keeps one group ready."""

    def gone() -> bool:
        return not any((_status(pid) or (0, ""))[1] == start for pid, start in processes)

    _wait_until(gone, "a process is left")
    left = [path for path in leftovers(places()) if f"opsdrill-{server}-" in path]
    assert len(left) <= (len(places()) if idle else 0)


@pytest.fixture
def program(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize("delay", [random.Random(n).random() * 0.12 for n in range(8)])
def test_killed_while_hosts_are_made(program: subprocess.Popen[str], delay: float) -> None:
    """A kill -9 at any moment of making hosts leaves no process and no control group."""
    server = int(_line(program))
    time.sleep(delay)
    before = _descendants(server)
    program.kill()
    program.wait()
    _wait_until(lambda: _status(server) is None, "the fork server is left")
    _nothing_left(before, server)


def test_killed_while_commands_run(program: subprocess.Popen[str], tmp_path: Path) -> None:
    """A kill -9 while commands run leaves nothing of them, `setsid` and double forks included."""
    server = int(_line(program))
    assert _line(program) == "made"
    _wait_until(lambda: len(_descendants(server)) >= 1 + 3 * 2 + 3, "the commands do not run")
    time.sleep(0.3)
    before = _descendants(server)
    program.kill()
    program.wait()
    _nothing_left(before, server)
    lines = asyncio.run(_reaped(tmp_path))
    assert len([line for line in lines if "memory share" in line]) == 1
    assert not list((tmp_path / "memory").glob("*.bytes"))


def test_killed_together_with_its_fork_server(
    program: subprocess.Popen[str], tmp_path: Path
) -> None:
    """When both processes are killed the hosts still end; the next `reap` removes the rest."""
    server = int(_line(program))
    assert _line(program) == "made"
    time.sleep(0.3)
    before = _descendants(server)
    os.kill(program.pid, signal.SIGSTOP)
    os.kill(server, signal.SIGKILL)
    program.kill()
    program.wait()
    _wait_until(
        lambda: not any((_status(pid) or (0, ""))[1] == start for pid, start in before),
        "a process is left",
    )
    lines = asyncio.run(_reaped(tmp_path))
    assert len([line for line in lines if "memory share" in line]) == 1
    _nothing_left(before, server)
    again = asyncio.run(_reaped(tmp_path))
    assert not [line for line in again if f"-{server}-" in line or "memory share" in line]


async def _reaped(state: Path) -> list[str]:
    driver = SandboxDriver(DriverContext(state))
    lines = await driver.reap()
    await driver.close()
    return lines


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[SandboxDriver]:
    made = SandboxDriver(DriverContext(tmp_path, {"size": "16M"}))
    yield made
    asyncio.run(made.close())


async def test_release_leaves_nothing(driver: SandboxDriver) -> None:
    """After `release` no process, control group or memory share of the run is left."""
    server = (await driver._linked()).pid
    fleet = await driver.provision("r", THREE)
    await fleet.hosts["web-0"].run(Command(run="setsid sleep 9999 & sleep 9999 & true"))
    await fleet.release()
    _wait_until(lambda: _idle(server), "a process is left")
    _nothing_left(set(), server, idle=True)
    assert driver._ledger._taken == {}


async def test_close_ends_everything(driver: SandboxDriver) -> None:
    """`close` ends the fork server and hosts that nobody gave back; it can be repeated."""
    server = (await driver._linked()).pid
    fleet = await driver.provision("r", ONE)
    before = _descendants(server)
    await driver.close()
    await driver.close()
    _nothing_left(before, server)
    assert (await fleet.hosts["web-01"].run(Command(run="true"))).unreachable
    await fleet.release()


@pytest.mark.parametrize("delay", [0.0, 0.002, 0.01, 0.03, 0.08])
async def test_cancelled_while_hosts_are_made(driver: SandboxDriver, delay: float) -> None:
    """Cancelling `provision` leaves nothing behind."""
    server = (await driver._linked()).pid
    call = asyncio.ensure_future(driver.provision("r", THREE))
    await asyncio.sleep(delay)
    if call.done():
        await call.result().release()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
        raise asyncio.CancelledError
    end = time.monotonic() + 20
    while not _idle(server):
        assert time.monotonic() < end
        await asyncio.sleep(0.02)
    assert driver._ledger._taken == {}


async def test_killed_fork_server_is_replaced(driver: SandboxDriver) -> None:
    """When the fork server dies its hosts do not answer; the next run gets a new one."""
    fleet = await driver.provision("r", ONE)
    host = fleet.hosts["web-01"]
    assert (await host.run(Command(run="true"))).exit_code == 0
    call = asyncio.ensure_future(host.run(Command(run="sleep 9999")))
    await asyncio.sleep(0.2)
    os.kill((await driver._linked()).pid, signal.SIGKILL)
    answer = await call
    assert answer.unreachable
    assert answer.last_answered_at is not None
    assert (await host.run(Command(run="true"))).unreachable
    with pytest.raises(HostUnreachable):
        await host.get("/etc/hostname")
    assert await host.changed() is None
    await fleet.release()
    async with await driver.provision("again", ONE) as again:
        assert (await again.hosts["web-01"].run(Command(run="true"))).exit_code == 0


async def test_lost_answer_of_a_living_host(driver: SandboxDriver) -> None:
    """When only the process between dies, the answer is `dropped`: the host itself answers."""
    server = (await driver._linked()).pid
    async with await driver.provision("r", ONE) as fleet:
        await fleet.hosts["web-01"].run(Command(run="true"))
        before = {pid for pid, _ in _descendants(server)}
        call = asyncio.ensure_future(fleet.hosts["web-01"].run(Command(run="sleep 9999")))
        await asyncio.sleep(0.3)
        fresh = {pid for pid, _ in _descendants(server)} - before
        parents = {pid: (_status(pid) or (0, ""))[0] for pid in fresh}
        # The one that the server's side started and that itself started the shell.
        between = [pid for pid in fresh if parents[pid] in before and pid in parents.values()]
        os.kill(between[0], signal.SIGKILL)
        answer = await call
        assert answer.dropped, answer
        assert answer.exit_code is None


@pytest.mark.parametrize("broken", ["name", "bound"])
async def test_a_failure_leaves_nothing(driver: SandboxDriver, broken: str) -> None:
    """All or nothing: when one host cannot be made the others are gone too."""
    server = (await driver._linked()).pid
    if broken == "bound":
        driver._options = Options(size=16 << 20, processes=10**12)
    names = [*ONE, HostSpec.model_construct(name="x" * 300)]
    with pytest.raises(ProvisionFailed) as failure:
        await driver.provision("r", names)
    assert failure.value.message
    end = time.monotonic() + 20
    while not _idle(server):
        assert time.monotonic() < end
        await asyncio.sleep(0.02)
    _nothing_left(set(), server, idle=True)
    assert driver._ledger._taken == {}


async def test_too_big_is_refused(tmp_path: Path) -> None:
    """A host that could never fit into half of the free memory is refused, with what to do."""
    driver = SandboxDriver(DriverContext(tmp_path, {"size": "9000G"}))
    with pytest.raises(ProvisionFailed, match="memory") as failure:
        await driver.provision("r", ONE)
    assert "size" in (failure.value.hint or "")
    await driver.close()


async def test_waits_for_memory(tmp_path: Path) -> None:
    """A host for which there is no memory now waits, says so, and gets it when another goes."""
    said: list[tuple[str, str]] = []
    context = DriverContext(
        tmp_path, {"size": "16M"}, notify=lambda run, text: said.append((run, text))
    )
    driver = SandboxDriver(context)
    driver._ledger._free = lambda: 40 << 20
    first = await driver.provision("first", ONE)
    second = asyncio.ensure_future(driver.provision("second", ONE))
    await asyncio.sleep(0.5)
    assert not second.done()
    assert said[0][0] == "second"
    assert "waiting for memory" in said[0][1]
    await first.release()
    await (await second).release()
    await driver.close()


async def test_preflight_tries_for_real(driver: SandboxDriver) -> None:
    """Preflight makes hosts, connects them where a run has several, and leaves nothing."""
    alone = await driver.preflight(ONE)
    several = await driver.preflight(THREE)
    assert [finding.what for finding in several if finding not in alone] == [
        "hosts of a run reach each other by name"
    ]
    assert not [finding for finding in several if finding.blocks]
    server = (await driver._linked()).pid
    _wait_until(lambda: _idle(server), "a process is left")
    _nothing_left(set(), server, idle=True)


async def test_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """A state folder that cannot be made is one sentence that names it."""
    (tmp_path / "file").write_text("")
    driver = SandboxDriver(DriverContext(tmp_path / "file" / "state"))
    with pytest.raises(DriverUnavailable, match="file"):
        await driver.provision("r", ONE)
    await driver.close()


async def test_forty_runs_interrupted_at_random(driver: SandboxDriver) -> None:
    """Forty runs cancelled at any moment leak no process, group, memory share or descriptor."""
    chance = random.Random(48)
    await (await driver.provision("first", THREE)).release()
    server = (await driver._linked()).pid
    ours, theirs = _descriptors(os.getpid()), _descriptors(server)

    async def one(number: int) -> None:
        async with await driver.provision(f"r{number}", THREE[: 1 + number % 3]) as fleet:
            run = "setsid sleep 9999 & yes | head -c 1000000; sleep 9999"
            await asyncio.gather(
                *(host.run(Command(run=run)) for host in fleet.hosts.values()),
                *(host.put("/srv/file", b"x" * 1000) for host in fleet.hosts.values()),
                *(host.mark() for host in fleet.hosts.values()),
            )

    async def interrupted(number: int) -> None:
        call = asyncio.ensure_future(one(number))
        await asyncio.sleep(chance.random() * 0.5)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    for batch in range(5):
        await asyncio.gather(*(interrupted(8 * batch + number) for number in range(8)))
    end = time.monotonic() + 30
    while not _idle(server):
        assert time.monotonic() < end, "a process is left"
        await asyncio.sleep(0.05)
    assert driver._ledger._taken == {}
    _nothing_left(set(), server, idle=True)
    assert _descriptors(os.getpid()) == ours
    assert _descriptors(server) <= theirs + 1  # the next host's spawner may be there or not
    async with await driver.provision("after", ONE) as fleet:
        assert (await fleet.hosts["web-01"].run(Command(run="true"))).exit_code == 0


async def test_sixty_four_hosts_in_one_run(driver: SandboxDriver) -> None:
    """The largest scenario: all hosts know each other's names and reach each other."""
    names = [HostSpec(name=f"node-{number}") for number in range(64)]
    async with await driver.provision("large", names) as fleet:
        last = fleet.hosts["node-63"]
        await last.run(Command(run="cd /srv; python3 -m http.server 80 >/dev/null 2>&1 &"))
        fetch = (
            "for i in $(seq 50); do python3 -c 'import urllib.request as u;"
            ' u.urlopen("http://node-63/", timeout=5)\' 2>/dev/null && exit;'
            " sleep 0.1; done; exit 1"
        )
        assert (await fleet.hosts["node-0"].run(Command(run=fetch))).exit_code == 0
