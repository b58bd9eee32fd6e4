"""The `sandbox` driver: makes the hosts of a run on this machine."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from functools import partial

from opsdrill.errors import DriverUnavailable, ProvisionFailed
from opsdrill.hosts.driver import DriverContext, Finding
from opsdrill.hosts.drivers.sandbox.ending import end_hosts
from opsdrill.hosts.drivers.sandbox.facts import host_facts
from opsdrill.hosts.drivers.sandbox.findings import findings, network_finding
from opsdrill.hosts.drivers.sandbox.host import SandboxHost
from opsdrill.hosts.drivers.sandbox.ledger import Ledger, TooBig
from opsdrill.hosts.drivers.sandbox.leftovers import remove_leftovers
from opsdrill.hosts.drivers.sandbox.link import Link
from opsdrill.hosts.drivers.sandbox.messages import Connect, Done, Failed, MakeHost
from opsdrill.hosts.drivers.sandbox.options import parse_options
from opsdrill.hosts.fleet import EndingFleet
from opsdrill.model.host import Command
from opsdrill.model.scenario import HostSpec

_BIRTH_SECONDS = 30.0


class SandboxDriver:
    """Gives throw-away hosts from kernel namespaces.

    Args:
        context: its options are `size`, `processes` and `memory`, all for each host.

    Raises:
        UsageError: an option that does not exist, or a value that cannot be.
    """

    name = "sandbox"
    throw_away = True

    def __init__(self, context: DriverContext) -> None:
        self._options = parse_options(context.options)
        self._ledger = Ledger(context.state / "memory")
        self._notify = context.notify
        self._link: Link | None = None
        self._starting = asyncio.Lock()
        self._found: dict[int, list[Finding]] = {}
        self._numbers = itertools.count(1)

    async def preflight(self, hosts: Sequence[HostSpec] = ()) -> list[Finding]:
        """Makes real hosts: two that are connected, or one where the run has no more."""
        kind = min(len(hosts), 2)
        if kind not in self._found:
            found = await self._tried(connected=kind != 1, needed=kind == 2)
            if any(finding.blocks for finding in found):
                return found
            # What worked once in this process is not tried again for every run.
            self._found[kind] = found
        return self._found[kind]

    async def _tried(self, *, connected: bool, needed: bool) -> list[Finding]:
        specs = [HostSpec(name=f"preflight-{number}") for number in range(1, 3)]
        try:
            link = await self._linked()
            await self._try(link, specs[:1])
        except (DriverUnavailable, ProvisionFailed) as error:
            return findings(None, self._options, str(error))
        found = findings(link.notes, self._options)
        if not connected:
            return found
        try:
            await self._try(link, specs)
        except ProvisionFailed as error:
            return [*found, network_finding(str(error), blocks=needed)]
        return [*found, network_finding("")]

    async def provision(self, run: str, hosts: Sequence[HostSpec]) -> EndingFleet[SandboxHost]:
        link = await self._linked()
        # A run may be made again before its last hosts are gone; `name` is this time's alone.
        name = f"{run}#{next(self._numbers)}"
        await self._take_memory(run, name, hosts)
        made = await self._make_all(link, name, hosts)
        return EndingFleet(made, partial(self._give_back, link, name, made))

    async def _give_back(self, link: Link, name: str, hosts: Mapping[str, SandboxHost]) -> None:
        await end_hosts(link, name, [host.id for host in hosts.values()])
        self._ledger.give_back(name)

    async def _try(self, link: Link, specs: Sequence[HostSpec]) -> None:
        """Make hosts, have one run a command, give them back.

        Raises:
            ProvisionFailed: something of that does not work.
        """
        name = f"preflight#{next(self._numbers)}"
        made = await self._make_all(link, name, specs)
        ids = [host.id for host in made.values()]
        async with EndingFleet(made, partial(end_hosts, link, name, ids)) as fleet:
            answer = await fleet.hosts[specs[0].name].run(Command(run="true", timeout=20.0))
        if answer.exit_code != 0:
            raise ProvisionFailed(specs[0].name, answer.reason or "a command did not work")

    async def _make_all(
        self, link: Link, name: str, hosts: Sequence[HostSpec]
    ) -> dict[str, SandboxHost]:
        addresses = {spec.name: f"10.99.0.{number}" for number, spec in enumerate(hosts, start=10)}
        if len(hosts) == 1:
            addresses = {}
        jobs = [asyncio.ensure_future(self._make(link, spec.name, addresses)) for spec in hosts]
        try:
            made = await asyncio.gather(*jobs)
            if addresses:
                await _connect(link, name, made, addresses)
        except BaseException:
            await asyncio.shield(self._undo(link, name, jobs))
            raise
        return {host.facts.name: host for host in made}

    async def reap(self) -> list[str]:
        return [*self._ledger.reap(), *remove_leftovers()]

    async def close(self) -> None:
        if self._link is not None:
            await self._link.close()
            self._link = None
        self._ledger.close()

    async def _linked(self) -> Link:
        """The fork server, started when it is first needed or when it is no more."""
        async with self._starting:
            if self._link is not None and not self._link.alive:
                await self._link.close()
                self._link = None
                remove_leftovers()
            if self._link is None:
                self._link = await Link.start()
            return self._link

    async def _take_memory(self, run: str, name: str, hosts: Sequence[HostSpec]) -> None:
        def waiting(text: str) -> None:
            if self._notify is not None:
                self._notify(run, text)

        try:
            await self._ledger.take(name, self._options.size * len(hosts), waiting)
        except TooBig as error:
            raise ProvisionFailed(
                hosts[0].name,
                f"its files would take too much of this machine's memory ({error})",
                hint="give the sandbox a smaller `size`",
            ) from None
        except OSError as error:
            raise DriverUnavailable(
                f"the sandbox cannot keep its books in {error.filename}: {error.strerror}",
                hint="make that folder writable",
            ) from None

    async def _make(self, link: Link, name: str, addresses: dict[str, str]) -> SandboxHost:
        number = f"h{next(self._numbers)}"
        options = self._options
        request = MakeHost(number, name, addresses, options.size, options.processes, options.memory)
        try:
            with await link.request(request) as exchange:
                async with asyncio.timeout(_BIRTH_SECONDS):
                    came = await exchange.receive()
            if came is not None and isinstance(came[0], Done):
                return SandboxHost(number, host_facts(name, options, link.notes), link)
            reason = came[0].reason if came and isinstance(came[0], Failed) else link.last_words()
        except TimeoutError:
            reason = f"it took more than {_BIRTH_SECONDS:g} s"
        except OSError as error:
            reason = str(error)
        except asyncio.CancelledError:
            link.release_later([number])
            raise
        link.release_later([number])
        raise ProvisionFailed(name, f"could not be made: {reason}", hint="try `opsdrill doctor`")

    async def _undo(
        self, link: Link, run: str, jobs: Sequence[asyncio.Future[SandboxHost]]
    ) -> None:
        for job in jobs:
            job.cancel()
        made = await asyncio.gather(*jobs, return_exceptions=True)
        hosts = [host.id for host in made if isinstance(host, SandboxHost)]
        await end_hosts(link, run, hosts)
        self._ledger.give_back(run)


async def _connect(
    link: Link, run: str, hosts: Sequence[SandboxHost], addresses: dict[str, str]
) -> None:
    members = {host.id: addresses[host.facts.name] for host in hosts}
    reason = "nobody answered"
    try:
        with await link.request(Connect(run, members)) as exchange:
            async with asyncio.timeout(_BIRTH_SECONDS):
                came = await exchange.receive()
        if came is not None and isinstance(came[0], Done):
            return
        if came is not None and isinstance(came[0], Failed):
            reason = came[0].reason
    except (OSError, TimeoutError) as error:
        reason = str(error) or "it took too long"
    raise ProvisionFailed(hosts[0].facts.name, reason)
