"""The engine room: the engine of this process and what its runs are worked with.

One driver and one mask a lab, made when a lab is first used; one thread for the store, one keeper
of leases, one searcher. Whoever opens the room submits runs to `engine`, after `prepared`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

from opsdrill.app import labs
from opsdrill.app.secrets import KnownSecrets
from opsdrill.app.wiring import Place
from opsdrill.evidence.mask import Mask
from opsdrill.hosts.driver import Driver
from opsdrill.model.run import LabChoice, RunSpec
from opsdrill.patterns import BoundedSearcher
from opsdrill.runner.archive import Archive
from opsdrill.runner.engine import Engine, RunEvent
from opsdrill.runner.inprocess import InProcessEngine
from opsdrill.runner.leases import LeaseKeeper
from opsdrill.runner.owner import is_gone, this_process
from opsdrill.runner.tools import RunTools
from opsdrill.store.store import Store

_Key = tuple[object, ...]
Values = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _OpenLab:
    """A lab in use: its driver, the hosts that it can log in to, and what is masked."""

    driver: Driver
    hosts: frozenset[str]
    secrets: Values = field(repr=False)
    """Those of its hosts, as the driver got them."""
    values: Values = field(repr=False)
    """All that were ever known in its runs: a secret that was changed is still one."""
    mask: Mask = field(default_factory=Mask)


class EngineRoom:
    """See the module. Made by `engine_room`, used on one loop.

    Attributes:
        engine: works off the runs; it knows nothing of labs but what it is given.
        at_once: on leaving, nothing is waited for.
        files: support files with secrets in them of the runs that are not over, by digest.
    """

    engine: Engine

    def __init__(self, place: Place, store: Store) -> None:
        self.at_once = False
        self._place = place
        self._store = store
        self._open: dict[_Key, _OpenLab] = {}
        self._drivers: list[Driver] = []
        self.files: dict[str, bytes] = {}
        self._users: dict[str, set[str]] = {}
        self._opening = asyncio.Lock()
        self._tell: Callable[[str, str], None] = lambda _run, _line: None

    async def prepared(
        self, specs: Sequence[RunSpec], secrets: KnownSecrets, files: Mapping[str, bytes]
    ) -> list[RunSpec]:
        """The same runs, ready to be submitted: all of one lab, whose driver works.

        Args:
            specs: at least one.
            secrets: those of their lab and their agents.
            files: support files that the store has masked only, by digest.

        Raises:
            DriverUnavailable: this machine or the lab cannot give such hosts.
            UsageError: the lab lacks what a scenario asks for, or a secret cannot be had.
        """

        async def opened(lab: LabChoice, hosts: frozenset[str]) -> Driver:
            return await self._opened(lab, hosts, secrets)

        async with self._opening:
            settled = await labs.settle(self._place, specs, maker=opened)
        for spec in specs:
            for file in spec.files:
                if file.digest in files:
                    self.files[file.digest] = files[file.digest]
                    self._users.setdefault(file.digest, set()).add(spec.id)
        return settled.runs(specs)

    def driver(self, lab: LabChoice) -> Driver:
        """The driver of a lab that a run was prepared for."""
        return self._open[_key(lab)].driver

    def mask(self, lab: LabChoice) -> Mask:
        """What is masked in all that is kept of a lab's runs."""
        return self._open[_key(lab)].mask

    async def _opened(self, lab: LabChoice, hosts: frozenset[str], secrets: KnownSecrets) -> Driver:
        known = self._open.get(_key(lab))
        own = tuple((name, value) for name, value in secrets.values if name in secrets.lab.names)
        if known is not None and _reaches(known, lab, hosts) and own == known.secrets:
            self._learn(known, secrets)
            return known.driver
        reached = hosts | known.hosts if known else hosts
        driver = await labs.working(
            self._place, lab, reached, lambda run, line: self._notify(lab, run, line), secrets.lab
        )
        self._drivers.append(driver)
        if known is None:
            self._open[_key(lab)] = _OpenLab(driver, reached, own, secrets.values, secrets.mask)
            return driver
        # Runs that began keep the driver they have; those that wait get the new one.
        known.driver, known.hosts, known.secrets = driver, reached, own
        self._learn(known, secrets)
        return driver

    def _learn(self, known: _OpenLab, secrets: KnownSecrets) -> None:
        """Mask what is known newly beside what was known before."""
        values = tuple(dict.fromkeys((*known.values, *secrets.values)))
        if values != known.values:
            known.values = values
            known.mask = Mask(values, warnings=secrets.missing)

    def _notify(self, lab: LabChoice, run: str, line: str) -> None:
        self._tell(run, self.mask(lab).text(line))

    def _forget(self, run: str) -> None:
        """The files of a run that is over are needed no more."""
        for digest in [digest for digest, users in self._users.items() if run in users]:
            self._users[digest].discard(run)
            if not self._users[digest]:
                del self._users[digest], self.files[digest]

    @asynccontextmanager
    async def opened(
        self, parallel: int, publish: Callable[[RunEvent], None]
    ) -> AsyncIterator[EngineRoom]:
        """The room with its engine, as long as the context lasts."""
        owner, archive = this_process(), Archive(self._store)
        leases = LeaseKeeper(self._store.leases(owner, is_gone))

        def heard(event: RunEvent) -> None:
            if event.result is not None:
                self._forget(event.run)
            publish(event)

        try:
            with BoundedSearcher() as searcher:
                tools = RunTools(
                    archive,
                    self.driver,
                    searcher,
                    owner,
                    publish=heard,
                    leases=leases,
                    mask=self.mask,
                    files=self.files,
                    home=self._place.home,
                )
                engine = InProcessEngine(tools, parallel=parallel)
                self.engine, self._tell = engine, engine.tell
                try:
                    yield self
                finally:
                    await engine.close(at_once=self.at_once)
        finally:
            await leases.close()
            archive.close(at_once=self.at_once)
            for driver in self._drivers:
                await driver.close()


def engine_room(
    place: Place, store: Store, *, parallel: int, publish: Callable[[RunEvent], None]
) -> AbstractAsyncContextManager[EngineRoom]:
    """The engine room of this process; closed, it gives everything back."""
    return EngineRoom(place, store).opened(parallel, publish)


def _reaches(known: _OpenLab, lab: LabChoice, hosts: frozenset[str]) -> bool:
    """Whether an open lab has such hosts; where they are made for each run, one is like another."""
    if lab.lab is not None and lab.lab.hosts:
        return hosts <= known.hosts
    return bool(known.hosts) or not hosts


def _key(lab: LabChoice) -> _Key:
    options = tuple(sorted(lab.options.items()))
    return (lab.name, lab.driver, lab.folder, lab.digest, options)
