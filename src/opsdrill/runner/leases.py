"""Holding leases while runs work: asking, waiting, renewing, and standing down when one is lost."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import ParamSpec, TypeVar

from opsdrill.errors import LeaseLost, OpsDrillError
from opsdrill.hosts.lease import LEASE_SECONDS, Claim, LeaseBook, waiting_for
from opsdrill.runner.archive import landed

P = ParamSpec("P")
T = TypeVar("T")

_SHORTEST, _LONGEST = 0.05, 1.0
"""Seconds between two looks whether it is a run's turn."""

log = logging.getLogger(__name__)


def _boot_time() -> float:
    # It counts on while the machine sleeps, as the leases of others do.
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


class LeaseKeeper:
    """The leases that this process holds or waits for, all renewed together.

    A lease that cannot be renewed is given up while nobody else can have it yet: after two thirds
    of its time, noticed after another sixth at most.

    Args:
        book: who holds what.
        seconds: how long a lease holds without being renewed; the book's own number.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        book: LeaseBook,
        *,
        seconds: float = LEASE_SECONDS,
        clock: Callable[[], float] = _boot_time,
    ) -> None:
        self._book = book
        self._pause = seconds / 6
        self._good_for = seconds * 2 / 3
        self._clock = clock
        self._waiting: set[int] = set()
        self._held: dict[int, HeldLease] = {}
        self._beating: asyncio.Task[None] | None = None
        self._released = asyncio.Event()
        self._closed = False
        # Two threads, so that a renewal never stands behind somebody's question.
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="opsdrill-leases")

    def hold(self, claim: Claim, tell: Callable[[str], None]) -> HeldLease:
        """Hosts for a run, had when entered as a context and given up when left.

        Entering waits for its turn; `tell` hears what for, each time that changes. When the lease
        is lost, the task that entered is cancelled and leaving raises LeaseLost.
        """
        return HeldLease(self, claim, tell)

    async def close(self) -> None:
        """End the heartbeat; leases that are still there end with this process."""
        self._closed = True
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.wait({self._beating})
        self._threads.shutdown(wait=False)

    def now(self) -> float:
        return self._clock()

    async def take(self, claim: Claim, tell: Callable[[str], None]) -> tuple[int, float]:
        """Wait until the claim is granted; its lease's number, and until when it is good."""
        told, pause = "", _SHORTEST
        number: int | None = None
        try:
            while True:
                asked = self._clock()
                asking = self._call(self._book.take, claim)
                try:
                    turn = await landed(asking)
                except asyncio.CancelledError:
                    if asking.done() and not asking.cancelled() and asking.exception() is None:
                        number = asking.result().number
                    raise
                if number is not None and number != turn.number:
                    self._waiting.discard(number)
                number = turn.number
                if turn.held:
                    self._waiting.discard(number)
                    return number, asked + self._good_for
                self._waiting.add(number)
                self._beat()
                if (line := waiting_for(turn.obstacles)) != told:
                    tell(line)
                    told = line
                await self._news(pause)
                pause = min(pause * 1.5, _LONGEST)
        except BaseException:
            if number is not None:
                self._waiting.discard(number)
                await self.release(number)
            raise

    async def release(self, number: int) -> None:
        """Give a lease up; where the book cannot be written it runs out by itself."""
        self._held.pop(number, None)
        if self._closed:
            return
        try:
            await landed(self._call(self._book.release, number))
        except OpsDrillError as error:
            log.debug("lease %s could not be released: %s", number, error)
        self._released.set()
        self._released = asyncio.Event()

    def keep(self, held: HeldLease) -> None:
        """Renew a lease from now on."""
        self._held[held.number] = held
        self._beat()

    def _call(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        future = asyncio.wrap_future(self._threads.submit(call, *args, **kwargs))
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        return future

    async def _news(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._released.wait()
        except TimeoutError:
            return

    def _beat(self) -> None:
        if self._beating is None or self._beating.done():
            self._beating = asyncio.create_task(self._heartbeat(), name="leases")

    async def _heartbeat(self) -> None:
        while self._held or self._waiting:
            # A book that does not answer must not keep lost leases from being noticed.
            renewing = asyncio.create_task(self._renew())
            try:
                while not renewing.done():
                    await asyncio.wait({renewing}, timeout=self._pause)
                    self._give_up_late()
            finally:
                renewing.cancel()
            await asyncio.sleep(self._pause)
            self._give_up_late()

    async def _renew(self) -> None:
        asked = self._clock()
        numbers = {*self._held, *self._waiting}
        try:
            there = await self._call(self._book.renew, numbers)
        except OpsDrillError as error:
            for held in self._held.values():
                held.trouble = str(error)
            return
        for number in numbers:
            if (lease := self._held.get(number)) is None:
                continue
            if number in there:
                lease.good_until, lease.trouble = asked + self._good_for, None
            else:
                self._lose(lease, "it ran out before this process could renew it")

    def _give_up_late(self) -> None:
        now = self._clock()
        for held in list(self._held.values()):
            if now >= held.good_until:
                why = held.trouble or "the process was stopped or too busy"
                self._lose(held, f"it could not be renewed in time ({why})")

    def _lose(self, held: HeldLease, why: str) -> None:
        self._held.pop(held.number, None)
        held.lose(why)


class HeldLease:
    """One run's lease, as a context (see `LeaseKeeper.hold`).

    Attributes:
        number: its number in the book; 0 before it is held.
        good_until: on the keeper's clock.
        trouble: why the latest renewal failed.
    """

    def __init__(self, keeper: LeaseKeeper, claim: Claim, tell: Callable[[str], None]) -> None:
        self._keeper = keeper
        self._claim = claim
        self._tell = tell
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._lost: str | None = None
        self.number = 0
        self.good_until = 0.0
        self.trouble: str | None = None

    @property
    def lost(self) -> str | None:
        """Why the hosts may be somebody else's by now; None while they are this run's."""
        if self._lost is None and self._keeper.now() >= self.good_until:
            return "it was not renewed in time"
        return self._lost

    def lose(self, why: str) -> None:
        """The lease is no more: whoever entered it is cancelled."""
        self._lost = why
        if self._task is not None:
            self._task.cancel()

    async def __aenter__(self) -> HeldLease:
        self.number, self.good_until = await self._keeper.take(self._claim, self._tell)
        self._task = asyncio.current_task()
        self._cancelling = self._task.cancelling() if self._task else 0
        self._keeper.keep(self)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        task, self._task = self._task, None
        try:
            await self._keeper.release(self.number)
        except asyncio.CancelledError as late:
            if self._lost is None:
                raise
            kind, error = asyncio.CancelledError, late  # it came when the work had just ended
        if self._lost is None or task is None:
            return
        # As asyncio.timeout does: a cancellation of somebody else's goes on as one.
        if task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise LeaseLost(", ".join(self._claim.hosts.values()), self._lost) from error
