"""The `container` driver: makes the hosts of a run with docker or podman."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Sequence

from opsdrill.errors import DriverUnavailable, OpsDrillError
from opsdrill.hosts.driver import DriverContext, Finding
from opsdrill.hosts.drivers.container.birth import Names
from opsdrill.hosts.drivers.container.engine import Engine, find_engine
from opsdrill.hosts.drivers.container.findings import (
    engine_finding,
    host_findings,
    image_findings,
    trouble_finding,
)
from opsdrill.hosts.drivers.container.host import ContainerHost
from opsdrill.hosts.drivers.container.images import (
    Image,
    have_image,
    image_name,
    image_remedy,
    named_images,
)
from opsdrill.hosts.drivers.container.leftovers import remember, remembered, remove_leftovers
from opsdrill.hosts.drivers.container.making import Making
from opsdrill.hosts.drivers.container.options import parse_options
from opsdrill.hosts.drivers.container.owner import Owner
from opsdrill.hosts.fleet import EndingFleet
from opsdrill.model.scenario import HostSpec


class ContainerDriver:
    """Gives throw-away hosts from images.

    Args:
        context: its options are `engine`, `image`, `internet`, `run_options` and `systemd`.

    Raises:
        UsageError: an option that does not exist, or a value that cannot be.
    """

    name = "container"
    throw_away = True

    def __init__(self, context: DriverContext) -> None:
        self._options = parse_options(context.options, context.folder)
        self._state = context.state
        self._images = context.images
        self._image = context.image or self._options.image
        self._notify = context.notify
        self._engine: Engine | None = None
        self._finding = asyncio.Lock()
        self._packages: dict[str, str | None] = {}

    async def preflight(self, hosts: Sequence[HostSpec] = ()) -> list[Finding]:
        try:
            engine = await self._found()
        except DriverUnavailable as error:
            return [engine_finding(None, error)]
        found = [engine_finding(engine, None)]
        tried: set[str | None] = set()
        for spec in hosts or (self._trial(),):
            if spec.image not in tried:
                tried.add(spec.image)
                found += await self._try(engine, spec, spec.name if hosts else None)
        return found

    def _trial(self) -> HostSpec:
        """A host of the default image; where there is none, of the first that the lab has."""
        first = None if self._image is not None else next(iter(self._images), None)
        return HostSpec(name="preflight", image=first)

    async def provision(self, run: str, hosts: Sequence[HostSpec]) -> EndingFleet[ContainerHost]:
        engine = await self._found()
        images = await self._have_images(engine, run, hosts)
        remember(self._state, engine)
        names = Names(secrets.token_hex(5), run, str(Owner.this()))
        return await Making(engine, names, self._options, self._packages).make(hosts, images)

    async def reap(self) -> list[str]:
        """Asks every engine that ever made hosts, and the one that would now."""
        lines: list[str] = []
        for program in dict.fromkeys((*remembered(self._state), self._options.engine)):
            try:
                lines += await remove_leftovers(await find_engine(program))
            except DriverUnavailable:
                continue  # it is not here any more, or does not run: nobody can ask it
        return lines

    async def close(self) -> None:
        """There is nothing of its own that runs."""

    async def _found(self) -> Engine:
        async with self._finding:
            if self._engine is None:
                self._engine = await find_engine(self._options.engine)
            return self._engine

    async def _have_images(
        self, engine: Engine, run: str, hosts: Sequence[HostSpec]
    ) -> dict[str, Image]:
        def waiting(text: str) -> None:
            if self._notify is not None:
                self._notify(run, text)

        known: dict[str, Image] = {}
        found = {}
        for spec in hosts:
            name = image_name(spec, self._images, self._image)
            if name not in known:
                known[name] = await have_image(engine, spec.name, name, waiting)
            found[spec.name] = known[name]
        return found

    async def _try(self, engine: Engine, spec: HostSpec, host: str | None) -> list[Finding]:
        if spec.image is None and self._image is None:
            remedy = image_remedy(engine, root=os.geteuid() == 0)
            return image_findings(host, await named_images(engine), remedy)
        try:
            async with await self.provision("preflight", (spec,)) as fleet:
                return host_findings(host, fleet.hosts[spec.name].facts, self._options)
        except OpsDrillError as error:
            return [trouble_finding(host, engine, error, self._options)]
