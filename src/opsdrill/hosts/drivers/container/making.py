"""Making the hosts of a run, one step after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from opsdrill.errors import ProvisionFailed
from opsdrill.hosts.command import ask_line, next_mark, next_nonce
from opsdrill.hosts.drivers.container.birth import (
    Names,
    addresses,
    names_text,
    network_arguments,
    run_arguments,
)
from opsdrill.hosts.drivers.container.ending import end_hosts
from opsdrill.hosts.drivers.container.engine import Engine, Reply
from opsdrill.hosts.drivers.container.host import ContainerHost
from opsdrill.hosts.drivers.container.images import Image
from opsdrill.hosts.drivers.container.link import ContainerLink
from opsdrill.hosts.drivers.container.options import Options
from opsdrill.hosts.fleet import EndingFleet
from opsdrill.hosts.look import PACKAGES, Look, look_text, packages_digest, parse_look
from opsdrill.hosts.shell_link import NoAnswer
from opsdrill.model.host import HostFacts
from opsdrill.model.scenario import HostSpec

T = TypeVar("T")
_CREATE_SECONDS = 120.0
_SYSTEMD_SECONDS = 90.0
_UP = ("running", "degraded", "maintenance")
_PACKAGE_BYTES = 4 * 1024 * 1024
_POOLS = ("address pool", "subnet")
"""What an engine that has no more networks to give speaks of."""


@dataclass(slots=True)
class Making:
    """The hosts of one run while they are made.

    Attributes:
        engine: where.
        names: what the parts are called.
        options: the lab's options.
        packages: digests of the packages of images seen before, by the image's id.
    """

    engine: Engine
    names: Names
    options: Options
    packages: dict[str, str | None] = field(default_factory=dict)

    async def make(
        self, specs: Sequence[HostSpec], images: Mapping[str, Image]
    ) -> EndingFleet[ContainerHost]:
        """All of them, or nothing.

        Raises:
            ProvisionFailed: one could not be made.
        """
        network = len(specs) > 1 or self.options.internet
        links = {
            spec.name: ContainerLink(self.engine, self.names.container(spec.name)) for spec in specs
        }
        # Whoever waits may be cancelled half way; the engine goes on, and then it is removed.
        steps = asyncio.ensure_future(self._steps(links, images, network=network))
        try:
            hosts = await asyncio.shield(steps)
        except BaseException:
            await asyncio.shield(self._undo(steps, links, network=network))
            raise
        end = partial(end_hosts, self.engine, self.names, links, network=network)
        return EndingFleet(hosts, end)

    async def _undo(
        self,
        steps: asyncio.Future[dict[str, ContainerHost]],
        links: Mapping[str, ContainerLink],
        *,
        network: bool,
    ) -> None:
        # Whatever is said to a host ends with its link; what the engine makes is made.
        await asyncio.gather(*(link.close() for link in links.values()))
        await asyncio.wait([steps])
        if not steps.cancelled():
            steps.exception()
        await end_hosts(self.engine, self.names, links, network=network)

    async def _steps(
        self, links: Mapping[str, ContainerLink], images: Mapping[str, Image], *, network: bool
    ) -> dict[str, ContainerHost]:
        hosts = list(links)
        if network:
            made = await self.engine.ask(*network_arguments(self.names, self.options))
            self._must(made, hosts[0], "its network could not be made")
        await _all(*(self._create(host, images[host], network=network) for host in hosts))
        known = await self._addresses(hosts) if network else {}
        done = await _all(
            *(
                self._meet(host, links[host], images[host], known or {host: "127.0.1.1"})
                for host in hosts
            )
        )
        return dict(zip(hosts, done, strict=True))

    async def _create(self, host: str, image: Image, *, network: bool) -> None:
        arguments = run_arguments(
            self.engine.kind, self.names, host, image.id, self.options, network=network
        )
        made = await self.engine.ask(*arguments, seconds=_CREATE_SECONDS)
        self._must(made, host, f"could not be made from {image.name}")

    def _must(self, reply: Reply, host: str, otherwise: str) -> None:
        if reply.good:
            return
        hint = f"try it by hand: `{self.engine.kind} run --rm -it IMAGE sh`"
        if any(word in reply.said for word in _POOLS):
            hint = f"remove networks that nobody uses: `{self.engine.kind} network prune`"
        raise ProvisionFailed(host, f"{otherwise}: {reply.said}", hint=hint)

    async def _addresses(self, hosts: list[str]) -> dict[str, str]:
        shape = "--format={{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}"
        containers = [self.names.container(host) for host in hosts]
        told = await self.engine.ask("inspect", "--type=container", shape, *containers)
        self._must(told, hosts[0], "its address is not known")
        try:
            return addresses(told.out, hosts)
        except ValueError as error:
            raise ProvisionFailed(hosts[0], f"its address is not known: {error}") from None

    async def _meet(
        self, host: str, link: ContainerLink, image: Image, known: Mapping[str, str]
    ) -> ContainerHost:
        """The first words with a host: the others' names, and what it is."""
        try:
            if self.options.systemd:
                await _systemd(link)
            nonce = next_nonce()
            text = f"{{ {names_text(known)}; }} 2>/dev/null;{look_text(next_mark())}"
            told = await link.talk(nonce, ask_line(nonce, text).encode(), seconds=60.0)
            look = parse_look(told.out.text)
            digest = await self._digest(link, image)
        except NoAnswer as error:
            said = await self.engine.ask("logs", "--tail=5", self.names.container(host))
            last = said.out.strip().rpartition("\n")[2] or said.said
            more = f"; it last said: {last[:200]}" if last else ""
            raise ProvisionFailed(
                host, f"was made from {image.name} and does not answer: {error.reason}{more}"
            ) from None
        if look is None or look.shell is None:
            raise ProvisionFailed(host, f"the image {image.name} has no shell where it belongs")
        facts = self._facts(host, look, digest, image)
        return ContainerHost(facts, link, self.engine, self.names.container(host))

    async def _digest(self, link: ContainerLink, image: Image) -> str | None:
        if image.id not in self.packages:
            nonce = next_nonce()
            line = ask_line(nonce, PACKAGES).encode()
            told = await link.talk(nonce, line, seconds=60.0, limit=_PACKAGE_BYTES)
            whole = told.out.full_size is None
            self.packages[image.id] = packages_digest(told.out.text) if whole else None
        return self.packages[image.id]

    def _facts(self, host: str, look: Look, digest: str | None, image: Image) -> HostFacts:
        limits = {
            "image": f"{image.name} ({image.id})",
            "engine": self.engine.version,
            "network": "what this machine reaches"
            if self.options.internet
            else "the hosts of its run",
            "disk, memory, processes": "as the engine and `run_options` bound them",
            "systemd": "runs" if self.options.systemd else "not asked for",
        }
        if not look.marks:
            limits["time limits"] = "what a command started cannot be told apart and is not killed"
        return HostFacts(
            name=host,
            driver="container",
            shell=look.shell or "",
            distribution=look.distribution,
            kernel=look.kernel,
            packages_digest=digest,
            users=True,
            limits=limits,
        )


async def _systemd(link: ContainerLink) -> None:
    """Wait until the host's units are started.

    Raises:
        NoAnswer: they were not.
    """
    state = ""
    try:
        async with asyncio.timeout(_SYSTEMD_SECONDS):
            while state not in _UP:
                nonce = next_nonce()
                line = ask_line(nonce, "systemctl is-system-running 2>/dev/null||:").encode()
                state = (await link.talk(nonce, line, seconds=60.0)).out.text.strip()
                if state not in _UP:
                    await asyncio.sleep(0.2)
    except TimeoutError:
        state = state or "no systemd"
        raise NoAnswer(f"its systemd is not up after {_SYSTEMD_SECONDS:g} s ({state})") from None


async def _all(*steps: Coroutine[Any, Any, T]) -> list[T]:
    """The results of steps that are taken at once; a failure waits until the others are over."""
    done = await asyncio.gather(*steps, return_exceptions=True)
    for result in done:
        if isinstance(result, BaseException):
            raise result
    return [result for result in done if not isinstance(result, BaseException)]
