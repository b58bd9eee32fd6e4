"""Containers are made, go missing, and are given back; nothing is left of a killed OpsDrill."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.engines import Engine, MakeDriver
from tests.integration.images import BUSYBOX

from opsdrill.errors import DriverUnavailable, ProvisionFailed
from opsdrill.hosts.driver import DriverContext
from opsdrill.hosts.drivers.container.driver import ContainerDriver
from opsdrill.hosts.drivers.container.owner import LABEL
from opsdrill.model.host import Command
from opsdrill.model.scenario import HostSpec

ONE = (HostSpec(name="web-01"),)
TWO = (*ONE, HostSpec(name="db-01"))

_RUNS = """
import asyncio, sys
from pathlib import Path
from opsdrill.hosts.driver import DriverContext
from opsdrill.hosts.drivers.container.driver import ContainerDriver
from opsdrill.model.host import Command
from opsdrill.model.scenario import HostSpec

async def main():
    driver = ContainerDriver(DriverContext(Path("/"), {"engine": sys.argv[1]}, image=sys.argv[2]))
    hosts = (HostSpec(name="web-01"), HostSpec(name="db-01"))
    print("begun", flush=True)
    async with await driver.provision("killed", hosts) as fleet:
        print("made", flush=True)
        await fleet.hosts["web-01"].run(Command(run="sleep 999 & sleep 999", timeout=900))

asyncio.run(main())
"""


def ours(engine: Engine) -> list[str]:
    """The containers and networks that are OpsDrill's."""
    by = f"--filter=label={LABEL}"
    return [*engine.ask("ps", "-aq", by).split(), *engine.ask("network", "ls", "-q", by).split()]


async def test_nothing_is_left(engine: Engine, make_driver: MakeDriver) -> None:
    """A fleet that was given back leaves neither containers nor networks."""
    fleet = await make_driver(engine).provision("run", TWO)
    assert len(ours(engine)) == 3
    await fleet.release()
    assert ours(engine) == []


@pytest.mark.parametrize(("internet", "inside"), [("no", "true"), ("yes", "false")])
async def test_only_hosts_of_a_run_are_reached(
    engine: Engine, make_driver: MakeDriver, internet: str, inside: str
) -> None:
    """Hosts of a run reach each other by name; the rest only if the lab says so."""
    async with await make_driver(engine, internet=internet).provision("run", TWO) as fleet:
        answer = await fleet.hosts["web-01"].run(Command(run="ping -c 1 -W 2 db-01"))
        assert answer.exit_code == 0, answer
        (network,) = engine.ask("network", "ls", "-q", f"--filter=label={LABEL}").split()
        assert engine.ask("network", "inspect", "--format={{.Internal}}", network) == f"{inside}\n"


@pytest.mark.parametrize("moment", range(6))
async def test_killed_at_any_moment(engine: Engine, make_driver: MakeDriver, moment: int) -> None:
    """kill -9 at any moment: after the next start nothing is left."""
    argv = [sys.executable, "-c", _RUNS, str(engine.program), BUSYBOX]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    if moment == 5:
        assert process.stdout.readline() == "made\n"
    await asyncio.sleep(random.uniform(0, 1.2))
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    # What its client was about to make is made all the same.
    await asyncio.sleep(1.5)
    driver = make_driver(engine)
    said = await driver.reap()
    assert ours(engine) == [], said
    assert all(line.startswith("removed the ") for line in said)


async def test_killed_with_hosts_says_what_was_removed(
    engine: Engine, make_driver: MakeDriver
) -> None:
    """`reap` has a line for each thing that it removed."""
    argv = [sys.executable, "-c", _RUNS, str(engine.program), BUSYBOX]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    while process.stdout.readline() != "made\n":
        assert process.poll() is None
    process.kill()
    process.wait()
    process.stdout.close()
    said = await make_driver(engine).reap()
    assert len(said) == 3
    assert sorted(line.rsplit("-", 1)[-1] for line in said if "container" in line) == ["01", "01"]
    assert ours(engine) == []


@pytest.mark.parametrize("after", [0.0, 0.1, 0.3, 0.6])
async def test_cancelled_while_made(engine: Engine, make_driver: MakeDriver, after: float) -> None:
    """All or nothing: a cancelled provision leaves nothing behind."""
    making = asyncio.ensure_future(make_driver(engine).provision("cancelled", TWO))
    await asyncio.sleep(after)
    if making.cancel():
        with pytest.raises(asyncio.CancelledError):
            await making
    else:  # it was quicker
        await (await making).release()
    assert ours(engine) == []


async def test_image_that_is_not_there(engine: Engine, make_driver: MakeDriver) -> None:
    """An image that cannot be had: the message names it, its host and what to try."""
    with pytest.raises(ProvisionFailed, match=r"web-01.*localhost/nosuch:9") as caught:
        await make_driver(engine, "localhost/nosuch:9").provision("run", ONE)
    assert "pull localhost/nosuch:9" in (caught.value.hint or "")
    assert ours(engine) == []


async def test_image_that_the_lab_does_not_have(engine: Engine, make_driver: MakeDriver) -> None:
    """`image` of a scenario is a name that the lab knows, and nothing else."""
    with pytest.raises(DriverUnavailable, match=r"web-01 wants the image 'debian:12'"):
        await make_driver(engine).provision("run", (HostSpec(name="web-01", image="debian:12"),))
    async with await make_driver(engine).provision(
        "run", (HostSpec(name="web-01", image="known"),)
    ) as fleet:
        assert BUSYBOX in fleet.hosts["web-01"].facts.limits["image"]


async def test_bad_run_options(engine: Engine, make_driver: MakeDriver) -> None:
    """What the engine refuses is said in its words, and leaves nothing."""
    with pytest.raises(ProvisionFailed, match="nosuchflag"):
        await make_driver(engine, run_options="--nosuchflag").provision("run", TWO)
    assert ours(engine) == []


GONE = {
    "removed": (("kill", "rm"), "gone"),
    "stopped": (("kill",), "stopped"),
}


@pytest.mark.parametrize("how", sorted(GONE))
async def test_container_that_goes_missing(
    engine: Engine, make_driver: MakeDriver, how: str
) -> None:
    """A container that is gone or has stopped is no answer, with the reason."""
    words, reason = GONE[how]
    async with await make_driver(engine).provision("run", ONE) as fleet:
        host = fleet.hosts["web-01"]
        call = asyncio.ensure_future(host.run(Command(run="sleep 99")))
        assert (await host.run(Command(run="true"))).exit_code == 0
        container = engine.ask("ps", "-q").split()[0]
        for word in words:
            engine.ask(word, container)
        for answer in (await call, await host.run(Command(run="true"))):
            assert answer.unreachable, answer
            assert reason in (answer.reason or "")
            assert answer.exit_code is None


async def test_engine_that_does_not_answer(
    engine: Engine, make_driver: MakeDriver, tmp_path: Path
) -> None:
    """An engine that dies under a run is no answer, and the reason names it."""
    client = tmp_path / "client"
    client.write_text(f'#!/bin/sh\nexec {engine.program} "$@"\n')
    client.chmod(0o755)
    driver = ContainerDriver(DriverContext(tmp_path, {"engine": str(client)}, image=BUSYBOX))
    async with await driver.provision("run", ONE) as fleet:
        host = fleet.hosts["web-01"]
        assert (await host.run(Command(run="true"))).exit_code == 0
        kind = "podman" if "podman" in host.facts.limits["engine"] else "docker"
        works = client.read_text()
        client.write_text("#!/bin/sh\necho 'Cannot connect to the daemon' >&2\nexit 125\n")
        answer = await host.run(Command(run="true"))
        client.write_text(works)
    assert answer.unreachable
    assert answer.reason == f"{kind} does not answer (Cannot connect to the daemon)"
    assert ours(engine) == []


async def test_no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an engine: one sentence that says what was tried, and what to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    driver = ContainerDriver(DriverContext(tmp_path, image=BUSYBOX))
    with pytest.raises(
        DriverUnavailable, match="no program docker; there is no program podman"
    ) as e:
        await driver.provision("run", ONE)
    assert "install -y podman" in (e.value.hint or "")
    found = await driver.preflight()
    assert [finding.blocks for finding in found] == [True]
    assert await driver.reap() == []


async def test_preflight_says_what_was_tried(engine: Engine, make_driver: MakeDriver) -> None:
    """Preflight makes a host and says what it is; an image that is not there blocks."""
    found = await make_driver(engine).preflight(ONE)
    assert not [finding for finding in found if finding.blocks]
    assert any("busybox alone" in finding.detail for finding in found)
    bad = await make_driver(engine, "localhost/nosuch:9").preflight()
    assert [finding.blocks for finding in bad] == [False, True]
