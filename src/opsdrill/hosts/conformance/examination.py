"""Runs checks on a driver and tells what became of each, in bounded time; leaves nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from opsdrill.errors import HostError, OpsDrillError
from opsdrill.hosts.conformance.asking import (
    ANSWERS_FROM_A_SCRIPT,
    CLEAR,
    READY,
    SCRIPTED,
    new_run,
    outcome,
    ran,
)
from opsdrill.hosts.conformance.check import Broken, Check, Given, NotApplicable, Outcome
from opsdrill.hosts.conformance.suite import CHECKS
from opsdrill.hosts.driver import Driver, Fleet, Host
from opsdrill.model.host import Command
from opsdrill.model.scenario import HostSpec

MAKING_SECONDS = 300.0
"""Seconds for hosts to be made, and to be given back."""
_GRACE = 30.0
"""Seconds that something which hangs has to end after it was cancelled."""

T = TypeVar("T")


async def examine(
    driver: Driver,
    hosts: Sequence[HostSpec],
    *,
    breakable: bool | None = None,
    checks: Sequence[Check] = CHECKS,
    tell: Callable[[Outcome], None] = lambda _: None,
) -> list[Outcome]:
    """Try every check on a driver.

    Hosts are used again as long as checks leave them whole; each check finds an empty folder.

    Args:
        driver: whose hosts are asked.
        hosts: two hosts to ask it for; with one, checks that take two do not apply.
        breakable: the hosts may be broken, and are nobody else's; without it, if they vanish with
            the run. On others all that a check does is undone afterwards.
        checks: those to try.
        tell: hears of each outcome at once.

    Raises:
        OpsDrillError: no host can be made, or none answers: there is nothing to examine.
    """
    bench = _Bench(driver, hosts, breakable)
    found = []
    try:
        await bench.begin()
        for check in checks:
            found.append(await bench.tried(check))
            tell(found[-1])
    finally:
        await bench.close()
    return found


async def examine_one(
    check: Check, driver: Driver, hosts: Sequence[HostSpec], *, breakable: bool | None = None
) -> Outcome:
    """Try one check on hosts made for it. Arguments as of `examine`."""
    bench = _Bench(driver, hosts[: max(check.hosts, 1)], breakable)
    try:
        return await bench.tried(check)
    finally:
        await bench.close()


class _Bench:
    """Hosts of the driver, kept from check to check while they are whole."""

    def __init__(self, driver: Driver, specs: Sequence[HostSpec], breakable: bool | None) -> None:
        self._driver = driver
        self._specs = tuple(specs[:2])
        self._breakable = driver.throw_away if breakable is None else breakable
        self._fleet: Fleet | None = None

    async def begin(self) -> None:
        """Make sure that there are hosts and that they answer. Raises as `examine`."""
        fleet = await self._given_hosts()
        for host in fleet.hosts.values():
            if host.facts.shell == SCRIPTED:
                continue
            answer = await _bounded(host.run(Command(run="true", timeout=30)), MAKING_SECONDS)
            if answer.exit_code != 0:
                raise HostError(host.facts.name, f"a command as root has {outcome(answer)}")

    async def tried(self, check: Check) -> Outcome:
        try:
            return await self._tried(check)
        except NotApplicable as error:
            return Outcome(check, "not applicable", str(error))
        except Broken as error:
            seen = str(error)
        except OpsDrillError as error:
            seen = error.message
        except TimeoutError:
            seen = "hosts were not made, asked or given back in time"
        except Exception as error:  # a driver of others may raise anything: that is what was seen
            seen = f"{type(error).__name__}: {error}"
        return Outcome(check, "failed", seen)

    async def close(self) -> None:
        """Give the hosts back."""
        fleet, self._fleet = self._fleet, None
        if fleet is not None:
            await _bounded(fleet.release(), MAKING_SECONDS)

    async def _tried(self, check: Check) -> Outcome:
        if check.hosts > len(self._specs):
            raise NotApplicable("it takes two hosts, and there is one")
        if "throw-away" in check.needs and not self._breakable:
            raise NotApplicable("it would break a host that lasts")
        if not check.hosts:
            await self._try_on_driver(check)
            return Outcome(check, "passed")
        if "throw-away" in check.needs:
            await self.close()
        fleet = await self._given_hosts()
        hosts = tuple(fleet.hosts.values())[: check.hosts]
        await self._must_apply(check, hosts)
        await self._try_on(check, hosts)
        return Outcome(check, "passed")

    async def _try_on_driver(self, check: Check) -> None:
        try:
            await _in_time(check, Given(self._driver, self._specs))
        finally:
            # A host that lasts still has what ran there when it was given back.
            if not self._breakable:
                fleet = await self._given_hosts()
                await _each(CLEAR, list(fleet.hosts.values()))

    async def _try_on(self, check: Check, hosts: tuple[Host, ...]) -> None:
        try:
            await _each(READY, hosts)
            await _in_time(check, Given(self._driver, self._specs, hosts))
        except BaseException:
            await self._put_away(hosts)
            raise
        if "throw-away" in check.needs:
            await self._put_away(hosts)
        else:
            await _each(CLEAR, hosts)

    async def _put_away(self, hosts: Sequence[Host]) -> None:
        """Give hosts back that may not be whole; those that last are cleared, if they can be."""
        if not self._breakable:
            with suppress(Broken, TimeoutError):
                await _each(CLEAR, hosts)
        await self.close()

    async def _given_hosts(self) -> Fleet:
        if self._fleet is None:
            making = self._driver.provision(new_run(), self._specs)
            self._fleet = await _bounded(making, MAKING_SECONDS)
        return self._fleet

    async def _must_apply(self, check: Check, hosts: Sequence[Host]) -> None:
        """Raises NotApplicable: what the check needs is not here; says what."""
        first = hosts[0]
        if first.facts.shell == SCRIPTED:
            if not check.scripted:
                raise NotApplicable(ANSWERS_FROM_A_SCRIPT)
            return
        if "users" in check.needs and not first.facts.users:
            why = first.facts.limits.get("users", "its commands run as root only")
            raise NotApplicable(why)
        for host in hosts:
            for program in check.programs:
                if (await ran(host, f"command -v {program}")).exit_code != 0:
                    raise NotApplicable(f"{host.facts.name} has no {program}")
        if "network" in check.needs and not self._breakable:
            for here, there in (hosts, reversed(hosts)):
                name = there.facts.name
                if (await ran(here, f"getent hosts {name}")).exit_code != 0:
                    raise NotApplicable(f"{here.facts.name} does not know the name {name}")


async def _each(run: str, hosts: Sequence[Host]) -> None:
    """Prepare hosts for a check, or clear them after it."""
    for host in hosts:
        if host.facts.shell != SCRIPTED:
            answer = await _bounded(host.run(Command(run=run, timeout=60)), MAKING_SECONDS)
            if answer.exit_code != 0:
                raise Broken(
                    f"the folder for checks could not be made or removed: {outcome(answer)}"
                    f" {answer.stderr}".rstrip()
                )


async def _in_time(check: Check, given: Given) -> None:
    try:
        await _bounded(check.body(given), check.seconds)
    except TimeoutError:
        raise Broken(f"it was not over within {check.seconds:g} s") from None


async def _bounded(work: Awaitable[T], seconds: float) -> T:
    """Wait for something that may not heed being cancelled.

    Raises:
        TimeoutError: it was not over in time.
    """
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        await asyncio.wait([task], timeout=seconds)
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=_GRACE)
    if task.cancelled() or not task.done():
        raise TimeoutError
    return task.result()
