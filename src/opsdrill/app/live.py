"""The engine of a process that stays: runs are submitted, cancelled, retried and followed here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from opsdrill.app import agents, hosts, labs, planning, retry
from opsdrill.app.engine_room import EngineRoom, engine_room
from opsdrill.app.events.followers import Followers
from opsdrill.app.hosts import LabReport
from opsdrill.app.live_order import LiveOrder, plan_of
from opsdrill.app.own_folders import own_folders
from opsdrill.app.recovery import recover
from opsdrill.app.secrets import KnownSecrets, known_secrets, mask_error
from opsdrill.app.wiring import Place
from opsdrill.errors import (
    Conflict,
    DriverUnavailable,
    NotThere,
    OpsDrillError,
)
from opsdrill.evidence.masked_spec import MaskedSpecs
from opsdrill.model.result import RunState
from opsdrill.model.run import RunSpec
from opsdrill.runner.engine import Engine, RunEvent
from opsdrill.runner.owner import is_gone
from opsdrill.store.store import Owner, Store

MOST_WAITING = 10_000
"""Runs that wait for their turn."""
PARALLEL = 2
"""Runs at once where nobody says how many."""
CANCELLED_AT_ONCE = 100
"""Runs of a batch that are ended together: more of them would hold up the loop."""
LOOK_SECONDS = 15.0
"""Between two looks whether a process beside this one died."""
UNKEPT = "its end could not be kept when it came"
CHECKS, CHECK_SECONDS = 4, 60.0
"""Labs that are looked at at once, and how long."""

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Started:
    """The runs of an order as they are kept, in the order planned."""

    batch: str
    runs: tuple[RunSpec, ...]


@dataclass(frozen=True, slots=True)
class _Planned:
    specs: Sequence[RunSpec]
    secrets: KnownSecrets = field(repr=False)
    files: Mapping[str, bytes] = field(repr=False)


class LiveEngine:
    """Works off runs for as long as its process stays (see `started`).

    Calls are made on the loop that it was started on; whatever waits for the disk waits on threads.

    Attributes:
        followers: who follows the runs, of this process and of others.
    """

    def __init__(self, place: Place, store: Store, room: EngineRoom, listeners: _Listeners) -> None:
        self._place = place
        self._store = store
        self._room = room
        self._listeners = listeners
        self.followers = Followers(store, self.listen, own_folders(place))
        self._checking = asyncio.Semaphore(CHECKS)
        self._ended: set[str] = set()
        listeners.add(self._hear)
        self._retrying = asyncio.Lock()
        self._retrying_batch = asyncio.Lock()

    @classmethod
    @asynccontextmanager
    async def started(
        cls, place: Place, store: Store, *, parallel: int | None = None, notify: Note = print
    ) -> AsyncIterator[LiveEngine]:
        """The engine, after what dead processes left was put right; in the end all is given back.

        Args:
            place: where it works.
            store: open until the end.
            parallel: runs at once, over all orders; None: what the settings say.
            notify: told what was put right, one line each.
        """
        for line in await recover(place, store):
            notify(line)
        listeners = _Listeners()
        most = parallel or place.settings.parallel or PARALLEL
        async with engine_room(place, store, parallel=most, publish=listeners.tell) as room:
            live = cls(place, store, room, listeners)
            looking = asyncio.create_task(live._look_after(notify), name="leftovers")
            try:
                yield live
            finally:
                await live.close(at_once=room.at_once)
                looking.cancel()
                with suppress(asyncio.CancelledError):
                    await looking

    @property
    def engine(self) -> Engine:
        return self._room.engine

    def listen(self, listener: Callable[[RunEvent], None]) -> Callable[[], None]:
        """Let somebody hear all that happens in the runs of this process, until they call what
        this returns. They are called on the loop, must be quick and must not raise."""
        return self._listeners.add(listener)

    async def submit(self, order: LiveOrder) -> Started:
        """Plan runs and begin to work them off.

        Raises:
            InvalidInput: a name that there is not, or a label of ours; or a scenario, a lab or an
                agent's file is broken.
            DriverUnavailable: the lab cannot give such hosts here.
            UsageError: the lab lacks what a scenario asks for; or too many runs.
            Conflict: too many runs wait already.
        """
        waiting = len(await self.engine.list())
        if waiting >= MOST_WAITING:
            raise Conflict(f"{waiting} runs wait already", hint="wait until some of them are over")
        specs = await self._prepared(await asyncio.to_thread(self._planned, order))
        await self.engine.submit(specs, at_once=order.parallel)
        return Started(str(specs[0].batch), await asyncio.to_thread(self._kept, specs))

    async def cancel(self, run: str) -> bool:
        """Stop a run and wait until its hosts are given back; False when it was over already.

        Raises:
            NotThere: there is no such run.
            Conflict: another process works on it.
        """
        return await self.engine.cancel(run)

    async def cancel_batch(self, batch: str) -> list[str]:
        """Stop all runs of a batch that are not over; returns those that were stopped.

        Raises:
            NotThere: there is no such batch.
        """
        await asyncio.to_thread(self._store.batch, batch)
        rows = await asyncio.to_thread(retry.unfinished, self._store, batch)
        own = {run for run, _ in await self.engine.list()}
        # The last first, so that none of them begins while others end.
        going = [run for run in reversed(rows) if run in own]
        stopped: list[str] = []
        for start in range(0, len(going), CANCELLED_AT_ONCE):
            part = going[start : start + CANCELLED_AT_ONCE]
            done = await asyncio.gather(*map(self.engine.cancel, part))
            stopped += [run for run, ended in zip(part, done, strict=True) if ended]
        return stopped

    async def retry(self, run: str) -> str:
        """Plan a run anew that ended in `error` or was interrupted; returns the new run's id.

        Raises:
            NotThere: there is no such run.
            Conflict: it is not over, has a verdict, was retried already, or needs what is not
                configured here.
        """
        async with self._retrying:  # of two at once the second finds that it was retried
            await self._prepared(await asyncio.to_thread(self._again, run))
            return await self.engine.retry(run)

    async def retry_batch(self, batch: str) -> list[str]:
        """Plan all runs of a batch anew that errored and were not retried; returns the new ids.

        Raises:
            NotThere: there is no such batch.
            Conflict: no run of it errored, or as `retry`.
        """
        await asyncio.to_thread(self._store.batch, batch)
        made: list[str] = []
        async with self._retrying_batch:
            for run in await self._errored(batch):
                try:
                    made.append(await self.retry(run))
                except (NotThere, Conflict):
                    # Deleted, or retried alone, meanwhile: what is left of the batch goes on.
                    if run in await self._errored(batch):
                        raise
        if not made:
            raise Conflict(f"no run of the batch {batch} errored", hint="there is nothing to retry")
        return made

    async def _errored(self, batch: str) -> Sequence[str]:
        return await asyncio.to_thread(retry.errored, self._store, batch)

    async def check_lab(self, name: str) -> LabReport:
        """Try whether a lab can give hosts and its machines answer; nothing is changed there.

        Raises:
            UnknownName: there is no such lab.
            InvalidInput: its file is broken.
            DriverUnavailable: it took too long.
            UsageError: a secret cannot be had.
        """
        choice = await asyncio.to_thread(labs.named_only, name, self._place)
        async with self._checking:
            try:
                async with asyncio.timeout(CHECK_SECONDS):
                    return await hosts.checked(self._place, choice)
            except TimeoutError:
                raise DriverUnavailable(
                    f"the lab {name} did not answer within {CHECK_SECONDS:.0f} seconds"
                ) from None

    async def list(self) -> list[tuple[str, RunState]]:
        """The runs of this process that are not over, in the order submitted."""
        return await self.engine.list()

    async def close(self, *, at_once: bool = False) -> None:
        """Start nothing more and give hosts back; a second call may say that it shall be at once.

        Leaving `started` does the same; this is for whoever cannot wait to leave it.
        """
        self._room.at_once = self._room.at_once or at_once
        await self.engine.close(at_once=at_once)
        await self.followers.close()

    def _hear(self, event: RunEvent) -> None:
        if event.result is not None:
            self._ended.add(event.run)

    async def _look_after(self, notify: Note) -> None:
        """Put right what processes beside this one leave when they die, and runs of this one whose
        end could not be kept."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                ended = frozenset(self._ended)
                kept = await asyncio.to_thread(_unfinished, self._store)
                self._ended -= ended
                own = {run for run, _ in await self.engine.list()}
                for run in (ended & kept.keys()) - own:
                    self._ended.add(run)  # until it is done
                    await asyncio.to_thread(self._store.interrupt, run, UNKEPT)
                    notify(f"run {run} was interrupted: {UNKEPT}")
                if any(owner is not None and is_gone(owner) for owner in kept.values()):
                    for line in await recover(self._place, self._store):
                        notify(line)
            except OpsDrillError as error:
                notify(f"what runs left could not be looked for: {error}")
            except KeyError:
                pass  # a run was deleted meanwhile

    # on threads

    def _planned(self, order: LiveOrder) -> _Planned:
        plan = plan_of(order, self._place, self._store)
        secrets = known_secrets(self._place, plan.lab, agents.secret_variables(plan.agents))
        specs, unmasked = planning.planned(plan, self._store, secrets.mask)
        return _Planned(specs, secrets, unmasked)

    def _again(self, run: str) -> _Planned:
        spec = retry.retriable(self._place, self._store, run)
        variables = agents.secret_variables([spec.agent])
        return _Planned([spec], known_secrets(self._place, spec.lab, variables), {})

    async def _prepared(self, found: _Planned) -> Sequence[RunSpec]:
        try:
            return await self._room.prepared(found.specs, found.secrets, found.files)
        except OpsDrillError as error:
            mask_error(found.secrets.mask, error)
            raise

    def _kept(self, specs: Sequence[RunSpec]) -> tuple[RunSpec, ...]:
        masked = MaskedSpecs(self._room.mask, self._room.files)
        return tuple(masked.of(spec).spec for spec in specs)


class _Listeners:
    """Who hears of all that happens."""

    def __init__(self) -> None:
        self._all: dict[int, Callable[[RunEvent], None]] = {}
        self._number = 0

    def add(self, listener: Callable[[RunEvent], None]) -> Callable[[], None]:
        self._number += 1
        number = self._number
        self._all[number] = listener

        def remove() -> None:
            self._all.pop(number, None)

        return remove

    def tell(self, event: RunEvent) -> None:
        for listener in list(self._all.values()):
            listener(event)


def _unfinished(store: Store) -> dict[str, Owner | None]:
    return dict([*store.running(), *store.planned()])
