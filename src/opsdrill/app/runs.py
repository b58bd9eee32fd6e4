"""The main job: plan runs of scenarios by agents, work them off, follow them to their results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from opsdrill.app import agents, labs, planning, scenarios
from opsdrill.app.engine_room import engine_room
from opsdrill.app.history import unfinished
from opsdrill.app.recovery import recover
from opsdrill.app.secrets import KnownSecrets, known_secrets, mask_error
from opsdrill.app.shelf import kept_scenarios
from opsdrill.app.stores import opened_store
from opsdrill.app.wiring import Place
from opsdrill.errors import OpsDrillError
from opsdrill.evidence.masked_spec import MaskedSpecs
from opsdrill.model.result import Result
from opsdrill.model.run import RunSpec
from opsdrill.runner.engine import Engine, RunEvent
from opsdrill.store.store import Store

__all__ = ["Batch", "Brake", "Order", "Outcome", "RunEvent", "plan", "planned", "work"]

Watch = Callable[[RunEvent], None]


@dataclass(frozen=True, slots=True)
class Order:
    """What was asked for. None and empty lists leave a thing to the settings."""

    scenarios: Sequence[str]
    agents: Sequence[str] = ()
    agent_config: Path | None = None
    lab: str | None = None
    repeat: int | None = None
    parallel: int | None = None
    agent_env: Sequence[str] = ()


class Brake:
    """Stops a batch. Pulled once: nothing more starts and hosts are given back. Twice: at once.

    Made and pulled on the loop's thread.
    """

    def __init__(self) -> None:
        self._pulled = (asyncio.Event(), asyncio.Event())

    def pull(self) -> int:
        """Pull it; returns how many times that was."""
        times = self.times + 1
        self._pulled[min(times, 2) - 1].set()
        return times

    @property
    def times(self) -> int:
        """How many times it was pulled, 2 at most."""
        return sum(event.is_set() for event in self._pulled)

    async def wait(self, times: int) -> None:
        """Until it was pulled so many times (1 or 2)."""
        await self._pulled[times - 1].wait()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a batch: the results of the runs that are over, in the order planned."""

    results: tuple[Result, ...]
    interrupted: bool
    left: tuple[RunSpec, ...]
    """The runs that have no verdict, because somebody stopped the batch."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Planned runs, to be worked off in the data folder of `place`."""

    place: Place
    store: Store
    specs: Sequence[RunSpec]
    parallel: int
    secrets: KnownSecrets
    files: Mapping[str, bytes]
    """Support files with secrets in them, by digest: the store has them masked."""

    @property
    def shown(self) -> list[RunSpec]:
        """The runs as they may be shown and kept."""
        return self.kept(self.specs)

    def kept(self, specs: Sequence[RunSpec]) -> list[RunSpec]:
        """Runs without any secret in them."""
        masked = MaskedSpecs(lambda _lab: self.secrets.mask, self.files)
        return [masked.of(spec).spec for spec in specs]

    async def work(self, watch: Watch, note: Callable[[str], None], brake: Brake) -> Outcome:
        """Clean up after processes that were killed, then work the runs off.

        Args:
            watch: told everything that happens in the runs.
            note: told what was cleaned up, one line each.
            brake: ends the batch before its runs are over.

        Raises:
            DriverUnavailable: this machine or the lab cannot give such hosts.
            UsageError: the lab lacks what a scenario asks for, or a secret cannot be had.
        """
        for line in await recover(self.place, self.store):
            note(line)
        try:
            return await work(self, watch=watch, brake=brake)
        except OpsDrillError as error:
            mask_error(self.secrets.mask, error)
            raise


@contextmanager
def planned(place: Place, order: Order) -> Iterator[Batch]:
    """The runs that an order asks for. Raises as `plan`."""
    with opened_store(place) as store:
        yield plan(place, order, store)


def plan(place: Place, order: Order, store: Store) -> Batch:
    """Every scenario by every agent, as often as asked, as values that need nothing further.

    Secrets are looked up here: what is put into the store, the support files first of all, has
    none in it.

    Raises:
        UsageError: the selection is empty, or no agent was named.
        InvalidInput: a scenario, a lab or an agent's file is broken.
    """
    selected = scenarios.selected(place, order.scenarios, kept_scenarios(store))
    chosen = agents.choose(order.agents, order.agent_config, place, order.agent_env)
    lab = labs.choose(order.lab, place)
    secrets = known_secrets(place, lab, agents.secret_variables(chosen))
    repeat = order.repeat or place.settings.repeat or 1
    wanted = planning.Plan(selected, chosen, lab, repeat)
    specs, unmasked = planning.planned(wanted, store, secrets.mask)
    parallel = order.parallel or place.settings.parallel or 1
    return Batch(place, store, specs, parallel, secrets, unmasked)


async def work(batch: Batch, *, watch: Watch, brake: Brake) -> Outcome:
    """Work the runs off and follow them until all are over or the brake was pulled.

    Raises:
        DriverUnavailable: this machine or the lab cannot give such hosts.
        UsageError: the lab lacks what a scenario asks for, or a secret cannot be had.
    """
    opening = engine_room(batch.place, batch.store, parallel=batch.parallel, publish=watch)
    async with opening as room:
        specs = await room.prepared(batch.specs, batch.secrets, batch.files)
        try:
            await _drive(room.engine, specs, brake)
        finally:
            room.at_once = brake.times > 1
    return _outcome(batch.store, batch.kept(specs), brake.times > 0)


async def _drive(engine: Engine, specs: Sequence[RunSpec], brake: Brake) -> None:
    """Submit the runs and wait until all are over; the brake ends them before."""
    working = asyncio.create_task(_worked_off(engine, specs))
    pulled = [asyncio.create_task(brake.wait(times)) for times in (1, 2)]
    closing: asyncio.Task[None] | None = None
    try:
        await _first_of(working, pulled[0])
        if brake.times:
            closing = asyncio.create_task(engine.close())
            await _first_of(closing, pulled[1])
        else:
            await working
    finally:
        await engine.close(at_once=brake.times > 1)
        await _ended([working, closing, *pulled])


async def _worked_off(engine: Engine, specs: Sequence[RunSpec]) -> None:
    await engine.submit(specs)
    async for _ in engine.subscribe([spec.id for spec in specs]):
        pass  # whoever watches is told by the engine itself, from the first event on


async def _first_of(*tasks: asyncio.Task[None]) -> None:
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


async def _ended(tasks: Sequence[asyncio.Task[None] | None]) -> None:
    real = [task for task in tasks if task is not None]
    for task in real:
        task.cancel()
    await asyncio.gather(*real, return_exceptions=True)


def _outcome(store: Store, specs: Sequence[RunSpec], interrupted: bool) -> Outcome:
    results = [_result(store, spec) for spec in specs]
    left = [spec for spec, result in zip(specs, results, strict=True) if result.verdict is None]
    return Outcome(tuple(results), interrupted, tuple(left))


def _result(store: Store, spec: RunSpec) -> Result:
    try:
        kept = store.get(spec.id)
    except KeyError:
        return unfinished(spec, "cancelled")  # the batch was stopped before this one was planned
    return kept.result or unfinished(spec, kept.state)
