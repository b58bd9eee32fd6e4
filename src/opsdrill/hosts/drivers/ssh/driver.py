"""The `ssh` driver: gives a run machines that exist."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from opsdrill.errors import DriverUnavailable, ProvisionFailed, UsageError
from opsdrill.hosts.driver import DriverContext, Finding
from opsdrill.hosts.drivers.ssh.arrival import arrive, packages
from opsdrill.hosts.drivers.ssh.ending import close, end
from opsdrill.hosts.drivers.ssh.findings import lab_finding, look_findings, silence_finding
from opsdrill.hosts.drivers.ssh.host import SshHost
from opsdrill.hosts.drivers.ssh.link import Link
from opsdrill.hosts.drivers.ssh.reasons import NoConnection
from opsdrill.hosts.fleet import EndingFleet
from opsdrill.hosts.look import UNMARKED
from opsdrill.model.host import HostFacts
from opsdrill.model.scenario import HostSpec


class SshDriver:
    """Gives machines that exist, from the lab's inventory; a scenario's host names are its names.

    Nothing is made and nothing is removed: what a run does to a machine stays. A background
    process that writes to the output of its command can do so until the run's connections close.

    Args:
        context: the machines are its `hosts`; there are no options.

    Raises:
        UsageError: an option.
    """

    name = "ssh"
    throw_away = False

    def __init__(self, context: DriverContext) -> None:
        if context.options:
            raise UsageError(
                f"the driver ssh has no option {min(context.options)!r}",
                hint="what belongs to a machine stands in `hosts` of the lab",
            )
        self._machines = context.hosts
        self._folder = context.folder

    async def preflight(self, hosts: Sequence[HostSpec] = ()) -> list[Finding]:
        if not hosts:
            return [lab_finding(self._machines)]
        found = await asyncio.gather(*(self._visit(spec.name) for spec in hosts))
        return [finding for of_one in found for finding in of_one]

    async def provision(self, run: str, hosts: Sequence[HostSpec]) -> EndingFleet[SshHost]:  # noqa: ARG002
        links: dict[str, Link] = {}
        try:
            for spec in hosts:
                self._link(spec.name, links)
            meetings = [asyncio.ensure_future(_meet(spec.name, links[spec.name])) for spec in hosts]
            try:
                met = await asyncio.gather(*meetings)
            finally:
                for meeting in meetings:
                    meeting.cancel()
        except BaseException:
            await asyncio.shield(close(links))
            raise
        return EndingFleet({host.facts.name: host for host in met}, partial(end, met, links))

    async def reap(self) -> list[str]:
        return []

    async def close(self) -> None:
        """There is nothing of its own that runs."""

    async def _visit(self, name: str) -> list[Finding]:
        links: dict[str, Link] = {}
        try:
            link = self._link(name, links)
            found = look_findings(link.host, (await arrive(link)).look)
        except DriverUnavailable as error:
            found = [Finding("inventory", False, str(error), error.hint, blocks=True)]
        except NoConnection as error:
            found = [silence_finding(error)]
        finally:
            await close(links)
        return [replace(finding, host=name) for finding in found]

    def _link(self, name: str, links: dict[str, Link], behind: tuple[str, ...] = ()) -> Link:
        """The link to a machine, and those that it goes through.

        Raises:
            DriverUnavailable: the lab has no such machine.
        """
        machine = self._machines.get(name)
        if machine is None or name in behind:
            reason = (
                f"goes through itself: {', '.join(behind)}" if name in behind else "is not there"
            )
            raise DriverUnavailable(
                f"the host {name} {reason} in `hosts` of the lab",
                hint=f"known: {', '.join(sorted(self._machines)) or 'none'}",
            )
        if name not in links:
            via = machine.via
            through = None if via is None else self._link(via, links, (*behind, name))
            links[name] = Link(machine, self._folder, through)
        return links[name]


async def _meet(name: str, link: Link) -> SshHost:
    """The machine as a host of a run.

    Raises:
        ProvisionFailed: it does not answer, or cannot do what a host must.
    """
    try:
        arrival = await arrive(link)
        look = arrival.look
        if look.shell is None:
            raise ProvisionFailed(name, "has neither bash nor sh where they belong")
        digest = await packages(link, arrival.login)
    except NoConnection as error:
        raise ProvisionFailed(name, f"does not answer: {error.reason}", hint=error.hint) from None
    limits = {"changed files": "not known on machines that exist"}
    if not look.marks:
        limits |= UNMARKED
    facts = HostFacts(
        name=name,
        driver="ssh",
        shell=look.shell,
        distribution=look.distribution,
        kernel=look.kernel,
        packages_digest=digest,
        users=look.uid == 0,
        limits=limits,
    )
    return SshHost(facts, link, arrival.login, look)
