"""The engine that works off runs in this process, with asyncio and nothing else."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from weakref import WeakSet

from opsdrill.errors import Conflict, NotThere, UsageError
from opsdrill.evidence.masked_spec import MaskedSpecs
from opsdrill.model.result import Result, RunState
from opsdrill.model.run import RunSpec
from opsdrill.runner.archive import landed
from opsdrill.runner.engine import RunEvent
from opsdrill.runner.result import Stop, broken_off, stopped
from opsdrill.runner.run import run
from opsdrill.runner.subscription import Subscription
from opsdrill.runner.tools import RunTools
from opsdrill.store.store import StoredRun

PLANNED_AT_ONCE = 100
"""Runs that are put into the store together: the first ones work while others are planned."""
AT_ONCE_SECONDS = 2.0
"""How long `close(at_once=True)` waits for runs to let go."""

NO_RESULT = "its process ended before the run was over"

log = logging.getLogger(__name__)


class InProcessEngine:
    """Works off runs in the order submitted, at most `parallel` at once (see `Engine`).

    Made and used inside one running loop.
    """

    def __init__(self, tools: RunTools, *, parallel: int = 1) -> None:
        if parallel < 1:
            raise UsageError(f"at least one run at a time is needed, not {parallel}")
        self._outside = tools.publish
        self._tools = replace(tools, publish=self._publish)
        self._masked = MaskedSpecs(tools.mask, tools.files)
        self._parallel = parallel
        self._submitted: dict[str, RunSpec] = {}
        """Runs that are not over, in the order submitted."""
        self._queue: OrderedDict[str, None] = OrderedDict()
        """Runs that wait for their turn."""
        self._limits: dict[str | None, int] = {}
        """How many runs of a batch may work at once, of those batches that have such a limit."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._followers: WeakSet[Subscription] = WeakSet()
        self._cancelling: set[str] = set()
        self._closed = False

    async def submit(self, specs: Sequence[RunSpec], *, at_once: int | None = None) -> None:
        """Plan the runs in the store and work them off (see `Engine`).

        Raises:
            UsageError: the engine was closed.
        """
        if at_once is not None:
            self._limits.update((spec.batch, at_once) for spec in specs)
        for start in range(0, len(specs), PLANNED_AT_ONCE):
            if self._closed:
                raise UsageError("no run can be started any more: the engine was closed")
            part = specs[start : start + PLANNED_AT_ONCE]
            await self._admit({spec.id: spec for spec in part if spec.id not in self._submitted})

    async def _admit(self, new: Mapping[str, RunSpec]) -> None:
        """Plan some runs, all or none; those planned wait for their turn, whoever waits here."""
        self._submitted.update(new)
        planning = self._tools.archive.submit(self._plan, tuple(new.values()))
        planning.add_done_callback(partial(self._admitted, tuple(new)))
        await landed(planning)
        if self._closed:
            for run_id in new:
                if run_id in self._queue:
                    del self._queue[run_id]
                    await self._drop(run_id)

    def _admitted(self, runs: Sequence[str], planning: asyncio.Future[set[str]]) -> None:
        broken = planning.cancelled() or planning.exception() is not None
        planned = set() if broken else planning.result()
        for run_id in runs:
            if run_id in planned:
                self._queue[run_id] = None
            else:
                del self._submitted[run_id]
        self._start_next()

    async def cancel(self, run: str) -> bool:
        """Stop a run, wait until its hosts are given back; False when it was over already.

        Raises:
            NotThere: there is no such run.
            Conflict: another process works on it.
        """
        if run not in self._submitted:
            await self._result_of(run)
            return False
        if run in self._queue:
            del self._queue[run]
            if not await self._drop(run):
                raise NotThere("run", run)
            return True
        task = self._tasks.get(run)
        if task is None:
            return False
        await self._cancel({run: task})
        await asyncio.wait({task})
        return (await self._stored(run)).state == "cancelled"

    async def retry(self, run: str) -> str:
        """Plan the same run anew under a new id, which its label `retry_of` leads back from.

        Raises:
            NotThere: there is no such run.
            Conflict: it is not over yet, or cannot be planned from what was kept.
        """
        stored = await self._stored(run)
        if not stored.over:
            raise Conflict(f"run {run} is not over yet", hint="cancel it or wait for it first")
        if stored.spec.masked:
            raise Conflict(
                f"run {run} cannot be planned again from what was kept: secrets in it are masked"
                f" ({', '.join(stored.spec.masked)})",
                hint="run its scenario's file again",
            )
        again = stored.spec.model_copy(
            update={
                "id": self._tools.new_id(),
                "created_at": self._tools.clock(),
                "labels": {**stored.spec.labels, "retry_of": run},
            }
        )
        await self.submit([again])
        return again.id

    async def list(self) -> list[tuple[str, RunState]]:
        """The runs that are not over, in the order submitted."""
        return [(run, "running" if run in self._tasks else "planned") for run in self._submitted]

    def subscribe(self, runs: Sequence[str] | None = None) -> Subscription:
        """What happens from now on in these runs, or in all that are not over; ends with them.

        Asked for the next event, it raises NotThere for a run that is not there, and
        Conflict for one that another process works on.
        """
        wanted = tuple(self._submitted if runs is None else dict.fromkeys(runs))
        live = {run for run in wanted if run in self._submitted}
        over = tuple(run for run in wanted if run not in live)
        follower = Subscription(live, over, self._result_of)
        if self._closed and not self._tasks:
            follower.close()
        self._followers.add(follower)
        return follower

    def tell(self, run: str, line: str) -> None:
        """Pass on a line about what is under way in a run, such as what a driver waits for."""
        self._publish(RunEvent(run, step=line))

    async def close(self, *, at_once: bool = False) -> None:
        """Start nothing more, cancel what is planned or runs, and wait until hosts are back.

        With `at_once` the giving back is broken off: what is left of hosts is found by the next
        start, and so are runs whose rows still say `running`.
        """
        self._closed = True
        tasks = dict(self._tasks)
        await self._cancel(tasks)
        if at_once:
            await _abandon(set(tasks.values()))
        else:
            while self._queue:
                await self._drop(self._queue.popitem(last=False)[0])
            if tasks:
                await asyncio.wait(tasks.values())
        for follower in list(self._followers):
            follower.close()

    def _plan(self, specs: Sequence[RunSpec]) -> set[str]:
        """Keep the runs as planned; returns those that the store does not know as begun or over."""
        kept = [self._masked.of(spec).spec for spec in specs]
        return self._tools.archive.store.plan_all(kept, self._tools.owner)

    def _end(self, spec: RunSpec) -> tuple[Result, bool]:
        """Keep a run that never began as cancelled; False where it is not there any more."""
        result = broken_off(self._masked.of(spec).spec, "cancelled", "cancelled before it began")
        try:
            self._tools.archive.store.finish(spec.id, result, None)
        except KeyError:
            return result, False
        return result, True

    def _start_next(self) -> None:
        while len(self._tasks) < self._parallel and not self._closed:
            run_id = self._next()
            if run_id is None:
                return
            del self._queue[run_id]
            task = asyncio.create_task(self._work(self._submitted[run_id]), name=f"run {run_id}")
            self._tasks[run_id] = task
            task.add_done_callback(partial(self._worked, run_id))

    def _next(self) -> str | None:
        """The first run in the queue whose batch may have one more at work."""
        if not self._limits:
            return next(iter(self._queue), None)
        working = Counter(
            self._submitted[run].batch for run in self._tasks if run in self._submitted
        )
        for run_id in self._queue:
            batch = self._submitted[run_id].batch
            if working[batch] < self._limits.get(batch, self._parallel):
                return run_id
        return None

    async def _work(self, spec: RunSpec) -> None:
        try:
            await run(spec, self._tools)
        except Exception as error:
            # The store failed: nobody will find the result there, so it is told here at least.
            log.debug("run %s could not be kept: %s", spec.id, type(error).__name__)
            kept, stop = self._masked.of(spec), Stop.of(error, None)
            stop = replace(stop, reason=kept.mask.text(stop.reason))
            self._publish(RunEvent(spec.id, result=stopped(kept.spec, stop)))
        finally:
            self._submitted.pop(spec.id, None)

    def _worked(self, run_id: str, _task: asyncio.Task[None]) -> None:
        del self._tasks[run_id]
        self._cancelling.discard(run_id)
        self._start_next()

    async def _cancel(self, tasks: Mapping[str, asyncio.Task[None]]) -> None:
        """Cancel each run once: a second time would break off its giving back."""
        await asyncio.sleep(0)  # a task cancelled before its first step would skip its clean-up
        for run_id, task in tasks.items():
            if run_id not in self._cancelling and not task.done():
                self._cancelling.add(run_id)
                task.cancel()

    async def _drop(self, run_id: str) -> bool:
        """End a run that never began, whoever waits here; False where it was deleted meanwhile."""
        ending = self._tools.archive.submit(self._end, self._submitted[run_id])
        ending.add_done_callback(partial(self._dropped, run_id))
        return (await landed(ending))[1]

    def _dropped(self, run_id: str, ending: asyncio.Future[tuple[Result, bool]]) -> None:
        if ending.cancelled() or ending.exception() is not None:
            self._queue[run_id] = None  # it is planned as before, and first again
            self._queue.move_to_end(run_id, last=False)
        else:
            self._publish(RunEvent(run_id, result=ending.result()[0]))

    def _publish(self, event: RunEvent) -> None:
        if event.result is not None:
            self._submitted.pop(event.run, None)
        for follower in list(self._followers):
            follower.offer(event)
        self._outside(event)

    async def _stored(self, run_id: str) -> StoredRun:
        archive = self._tools.archive
        try:
            return await archive.keep(archive.store.get, run_id)
        except KeyError:
            raise NotThere("run", run_id) from None

    async def _result_of(self, run_id: str) -> Result:
        stored = await self._stored(run_id)
        if not stored.over:
            raise Conflict(f"run {run_id} is not over, and this process does not work on it")
        return stored.result or broken_off(stored.spec, stored.state, NO_RESULT)


async def _abandon(tasks: set[asyncio.Task[None]]) -> None:
    """Break off the giving back of runs, as often as they start another piece of it."""
    loop = asyncio.get_running_loop()
    end = loop.time() + AT_ONCE_SECONDS
    while (pending := {task for task in tasks if not task.done()}) and loop.time() < end:
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=0.02)
