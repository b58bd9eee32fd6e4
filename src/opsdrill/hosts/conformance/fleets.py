"""The hosts of one run: made, reached by name, apart from each other, given back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from opsdrill.errors import HostUnreachable
from opsdrill.hosts.conformance.asking import (
    ANSWERS_FROM_A_SCRIPT,
    FOLDER,
    LONG,
    SCRIPTED,
    expect,
    expect_equal,
    expect_error,
    expect_printed,
    expect_sleeping,
    new_run,
    outcome,
    printed,
    ran,
    sleeping,
)
from opsdrill.hosts.conformance.check import Broken, NotApplicable, on_driver, on_two_hosts
from opsdrill.hosts.conformance.processes import SERVE, fetch
from opsdrill.hosts.driver import Driver, Host
from opsdrill.model.host import Command
from opsdrill.model.scenario import HostSpec

SHARED = ("/tmp", "/dev/shm")  # noqa: S108
"""Folders of a host that anybody there may write to."""


@on_driver()
async def preflight_tells(driver: Driver, specs: Sequence[HostSpec]) -> None:
    """Preflight says what works and never raises; where hosts can be made, nothing it finds stands
    in the way."""
    found = await driver.preflight(specs[:1])
    expect(bool(found), "it found nothing")
    expect(all(finding.what for finding in found), "a finding does not say what it is about")
    blocking = [finding.what for finding in found if finding.blocks]
    expect_equal(blocking, [], "what stands in the way")


@on_driver()
async def hosts_by_name(driver: Driver, specs: Sequence[HostSpec]) -> None:
    """A fleet has the hosts that were asked for, in that order, each with facts that name it, its
    driver and its shell."""
    async with await driver.provision(new_run(), specs) as fleet:
        expect_equal(list(fleet.hosts), [spec.name for spec in specs], "the names of the hosts")
        for name, host in fleet.hosts.items():
            expect_equal(host.facts.name, name, "the name in the facts")
            expect(bool(host.facts.driver and host.facts.shell), f"{name}: {host.facts!r}")


@on_two_hosts("throw-away")
async def host_knows_its_name(first: Host, second: Host) -> None:
    """A host's name is its own host name, and resolves there."""
    for host in (first, second):
        asked = "hostname; getent hosts $(hostname) | wc -l"
        await expect_printed(host, asked, f"{host.facts.name}\n1\n")


@on_two_hosts("network")
async def names_resolve(first: Host, second: Host) -> None:
    """Each host of a run finds the other's address by its name."""
    for here, there in ((first, second), (second, first)):
        found = (await printed(here, f"getent hosts {there.facts.name}")).split()
        expect(bool(found), f"{here.facts.name} does not find {there.facts.name}")
        own = (await printed(here, f"getent hosts {here.facts.name} || :")).split()
        expect(not own or own[0] != found[0], f"both are {found[0]}")


@on_two_hosts("network", programs=("python3",))
async def hosts_reach_each_other(first: Host, second: Host) -> None:
    """Hosts of a run reach each other's services by name."""
    await ran(second, f"echo from-the-other > {FOLDER}/page; {SERVE} >/dev/null 2>&1 &")
    answer = await ran(first, fetch(second.facts.name), seconds=60)
    expect_equal(answer.stdout, "from-the-other\n", f"what is fetched ({outcome(answer)})")


@on_two_hosts()
async def hosts_share_nothing(first: Host, second: Host) -> None:
    """Files, temporary files, shared memory and processes of one host are not another's."""
    places = " ".join(f"{folder}/opsdrill-conformance-mine" for folder in SHARED)
    try:
        await printed(first, f"for f in {places}; do >$f; done; >{FOLDER}/mine")
        await printed(first, f"sleep {LONG} >/dev/null 2>&1 &")
        await expect_printed(second, f"ls -d {places} {FOLDER}/mine 2>/dev/null; :", "")
        await expect_sleeping(first, otherwise="its own process is not seen")
        expect(not await sleeping(second), "the other host sees its process")
    finally:
        with suppress(Broken):
            await ran(first, f"rm -f {places}")


@on_driver()
async def release_is_repeatable(driver: Driver, specs: Sequence[HostSpec]) -> None:
    """Hosts can be given back again and again, at once as well, and it never raises."""
    fleet = await driver.provision(new_run(), specs[:1])
    await fleet.release()
    await fleet.release()
    await asyncio.gather(fleet.release(), fleet.release())


@on_driver()
async def released_host_is_silent(driver: Driver, specs: Sequence[HostSpec]) -> None:
    """A host that was given back does not answer, for commands and files; no status is made up,
    and the answer tells when it last answered."""
    fleet = await driver.provision(new_run(), specs[:1])
    try:
        host = fleet.hosts[specs[0].name]
        answer = await host.run(Command(run="true"))
        expect_equal(answer.exit_code, 0, "the status before")
    finally:
        await fleet.release()
    answer = await host.run(Command(run="true"))
    expect(answer.unreachable is True, outcome(answer))
    expect(bool(answer.reason), "no reason is given")
    expect(answer.last_answered_at is not None, "it is not said when it last answered")
    await expect_error(host.put(f"{FOLDER}/file", b"x"), HostUnreachable, "put")
    await expect_error(host.get("/etc/hostname"), HostUnreachable, "get")


@on_driver()
async def release_ends_commands(driver: Driver, specs: Sequence[HostSpec]) -> None:
    """A command that runs while its host is given back ends as no answer."""
    fleet = await driver.provision(new_run(), specs[:1])
    host = fleet.hosts[specs[0].name]
    seconds = 9999 if host.facts.shell == SCRIPTED else LONG
    call = asyncio.ensure_future(host.run(Command(run=f"sleep {seconds}")))
    try:
        await asyncio.sleep(0.2)
        await fleet.release()
        done, _ = await asyncio.wait([call], timeout=30)
        expect(bool(done), "the command went on for 30 s")
        expect(call.result().unreachable is True, outcome(call.result()))
    finally:
        call.cancel()
        await asyncio.wait([call])


@on_driver(seconds=180)
async def runs_at_once(driver: Driver, specs: Sequence[HostSpec]) -> None:
    """Several runs have hosts of the same name at the same time."""
    made = await asyncio.gather(
        *(driver.provision(new_run(), specs[:1]) for _ in range(5)), return_exceptions=True
    )
    fleets = [fleet for fleet in made if not isinstance(fleet, BaseException)]
    try:
        expect(len(fleets) == len(made), f"of {len(made)} only {len(fleets)} were made: {made}")
        answers = await asyncio.gather(
            *(fleet.hosts[specs[0].name].run(Command(run="exit 3")) for fleet in fleets)
        )
        expect_equal([answer.exit_code for answer in answers], [3] * 5, "the five statuses")
    finally:
        await asyncio.gather(*(fleet.release() for fleet in fleets))


@on_driver()
async def context_gives_back(driver: Driver, specs: Sequence[HostSpec]) -> None:
    """Leaving a fleet as a context gives the hosts back, after an error too, which goes on."""
    try:
        async with await driver.provision(new_run(), specs[:1]) as fleet:
            raise ZeroDivisionError
    except ZeroDivisionError:
        answer = await fleet.hosts[specs[0].name].run(Command(run="true"))
        expect(answer.unreachable is True, outcome(answer))
    else:
        raise Broken("the error was swallowed")


@on_driver()
async def reap_spares_the_living(driver: Driver, specs: Sequence[HostSpec]) -> None:
    """Removing what dead processes left behind does not touch hosts that are in use."""
    async with await driver.provision(new_run(), specs[:1]) as fleet:
        await driver.reap()
        answer = await fleet.hosts[specs[0].name].run(Command(run="true"))
        expect_equal(answer.exit_code, 0, "the status of a command afterwards")


@on_driver("throw-away", scripted=False, seconds=180)
async def hosts_are_fresh(driver: Driver, specs: Sequence[HostSpec]) -> None:
    """A host that is made has nothing of an earlier one of its name: no file, no process."""
    async with await driver.provision(new_run(), specs[:1]) as fleet:
        host = fleet.hosts[specs[0].name]
        if host.facts.shell == SCRIPTED:
            raise NotApplicable(ANSWERS_FROM_A_SCRIPT)
        await printed(host, f"mkdir -p {FOLDER}; >{FOLDER}/mine; sleep {LONG} >/dev/null 2>&1 &")
    async with await driver.provision(new_run(), specs[:1]) as fleet:
        host = fleet.hosts[specs[0].name]
        await expect_printed(host, f"ls -d {FOLDER} 2>/dev/null; :", "")
        expect(not await sleeping(host), "a process of the earlier one is there")
