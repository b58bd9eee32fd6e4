"""Hosts of one run: made, reached by name, given back."""

from __future__ import annotations

import asyncio

import pytest

from opsdrill.errors import HostUnreachable
from opsdrill.hosts.driver import Driver, Fleet
from opsdrill.model.host import Command
from opsdrill.model.scenario import HostSpec

ONE = (HostSpec(name="web-01"),)


async def test_preflight_never_raises(any_driver: Driver) -> None:
    """Preflight says what works; where hosts can be made, nothing it found blocks."""
    found = await any_driver.preflight(ONE)
    assert found
    assert not [finding for finding in found if finding.blocks]
    assert all(finding.what for finding in found)


async def test_hosts_by_name(any_fleet: Fleet) -> None:
    """A fleet has the hosts that were asked for, each with its facts."""
    assert list(any_fleet.hosts) == ["web-01", "db-01"]
    for name, host in any_fleet.hosts.items():
        assert host.facts.name == name
        assert host.facts.driver
        assert host.facts.shell


async def test_host_knows_its_name(fleet: Fleet) -> None:
    """A host's name is its own, and resolves."""
    for name, host in fleet.hosts.items():
        answer = await host.run(Command(run="hostname; getent hosts $(hostname) | wc -l"))
        assert answer.stdout == f"{name}\n1\n"


async def test_hosts_reach_each_other_by_name(fleet: Fleet) -> None:
    """Hosts of one run reach each other by name."""
    serve = "cd /srv; echo from-db > page; nohup python3 -m http.server 80 >/dev/null 2>&1 &"
    fetch = (
        "for i in $(seq 100); do"
        " python3 -c 'from urllib.request import urlopen as u;"
        ' print(u("http://db-01/page", timeout=5).read().decode(), end="")\''
        " 2>/dev/null && exit; sleep 0.1; done; exit 1"
    )
    await fleet.hosts["db-01"].run(Command(run=serve))
    answer = await fleet.hosts["web-01"].run(Command(run=fetch, timeout=40))
    assert answer.stdout == "from-db\n", answer


async def test_hosts_share_nothing_else(fleet: Fleet) -> None:
    """Files, processes and temporary folders of one host are not another's."""
    one, two = fleet.hosts["web-01"], fleet.hosts["db-01"]
    await one.run(Command(run="touch /tmp/mine /srv/mine /dev/shm/mine; sleep 7777 >/dev/null &"))
    seen = "ls /tmp /srv /dev/shm | grep mine; pgrep -f 'sleep 7777'"
    assert (await two.run(Command(run=seen))).stdout == ""


async def test_release_is_repeatable(any_driver: Driver) -> None:
    """`release` can be called again, and never raises."""
    fleet = await any_driver.provision("again", ONE)
    await fleet.release()
    await fleet.release()
    await asyncio.gather(fleet.release(), fleet.release())


async def test_released_host_does_not_answer(any_driver: Driver) -> None:
    """A host that was given back is unreachable, for commands and files; no status is made up."""
    fleet = await any_driver.provision("gone", ONE)
    host = fleet.hosts["web-01"]
    assert (await host.run(Command(run="true"))).exit_code == 0
    await fleet.release()
    answer = await host.run(Command(run="true"))
    assert answer.unreachable
    assert answer.reason
    assert answer.last_answered_at is not None
    with pytest.raises(HostUnreachable):
        await host.put("/srv/file", b"x")
    with pytest.raises(HostUnreachable):
        await host.get("/etc/hostname")


async def test_release_ends_a_running_command(any_driver: Driver) -> None:
    """A command that runs while its host is given back ends as no answer."""
    fleet = await any_driver.provision("cut", ONE)
    call = asyncio.ensure_future(fleet.hosts["web-01"].run(Command(run="sleep 9999")))
    await asyncio.sleep(0.2)
    await fleet.release()
    async with asyncio.timeout(30):
        answer = await call
    assert answer.unreachable, answer


async def test_runs_at_once(any_driver: Driver) -> None:
    """Several runs have hosts of the same name at the same time."""
    fleets = await asyncio.gather(*(any_driver.provision(f"r{n}", ONE) for n in range(5)))
    answers = await asyncio.gather(
        *(fleet.hosts["web-01"].run(Command(run="exit 3")) for fleet in fleets)
    )
    assert [answer.exit_code for answer in answers] == [3] * 5
    await asyncio.gather(*(fleet.release() for fleet in fleets))


async def test_context_gives_back_on_error(any_driver: Driver) -> None:
    """Leaving the fleet as a context gives the hosts back, after an error too."""
    with pytest.raises(ZeroDivisionError):
        async with await any_driver.provision("error", ONE) as fleet:
            raise ZeroDivisionError
    assert (await fleet.hosts["web-01"].run(Command(run="true"))).unreachable


async def test_reap_leaves_the_living_alone(any_driver: Driver) -> None:
    """`reap` does not touch hosts that are in use."""
    async with await any_driver.provision("alive", ONE) as fleet:
        await any_driver.reap()
        assert (await fleet.hosts["web-01"].run(Command(run="true"))).exit_code == 0
