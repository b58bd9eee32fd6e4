"""Images with systemd: their init is the host's first process."""

from __future__ import annotations

import pytest
from tests.integration.engines import Engine, MakeDriver
from tests.integration.images import BUSYBOX, DEBIAN

from opsdrill.errors import ProvisionFailed
from opsdrill.model.host import Command
from opsdrill.model.scenario import HostSpec

ONE = (HostSpec(name="web-01"),)
# The podman of these tests keeps its containers in one control group, which is its machine's.
GROUPS = "--volume=/sys/fs/cgroup:/sys/fs/cgroup --cgroupns=private"
_UNIT = "[Service]\nExecStart=/bin/sleep 4711\n"


async def test_units_work(podman: Engine, make_driver: MakeDriver) -> None:
    """`systemctl` starts, asks for and stops units; the host is up when it is given."""
    driver = make_driver(podman, DEBIAN, systemd="yes", run_options=GROUPS)
    async with await driver.provision("run", ONE) as fleet:
        host = fleet.hosts["web-01"]
        await host.put("/etc/systemd/system/drill.service", _UNIT.encode())

        async def printed(run: str) -> str:
            answer = await host.run(Command(run=run, timeout=30))
            return f"{answer.exit_code} {answer.stdout}"

        assert await printed("test -d /run/systemd/system; echo $?; cat /proc/1/comm") == (
            "0 0\nsystemd\n"
        )
        assert await printed("systemctl is-system-running | grep -x -e running -e degraded") in (
            "0 running\n",
            "0 degraded\n",
        )
        assert await printed("systemctl start drill && systemctl is-active drill") == "0 active\n"
        assert await printed("pgrep -fc '[s]leep 4711'") == "0 1\n"
        assert await printed("systemctl stop drill; systemctl is-active drill") == "3 inactive\n"
        timed = await host.run(Command(run="sleep 99 & setsid sleep 99", timeout=0.5))
        assert timed.timed_out
        assert (await host.run(Command(run="pgrep -f 'sleep 99'"))).exit_code == 1
        assert host.facts.limits["systemd"] == "runs"


async def test_image_without_systemd(engine: Engine, make_driver: MakeDriver) -> None:
    """An image that has no systemd is refused, and preflight says so."""
    driver = make_driver(engine, BUSYBOX, systemd="yes")
    with pytest.raises(ProvisionFailed, match="web-01"):
        await driver.provision("run", ONE)
    found = [finding for finding in await driver.preflight() if finding.blocks]
    assert len(found) == 1
    assert "systemd" in (found[0].remedy or "")
    assert engine.ask("ps", "-aq") == ""
