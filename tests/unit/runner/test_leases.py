"""Holding leases: waiting aloud, renewing, and stopping what works on a host that was lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable

import pytest

from opsdrill.errors import LeaseLost, StoreError
from opsdrill.hosts.lease import Claim, Lease, LeaseBook, Turn
from opsdrill.runner.leases import HeldLease, LeaseKeeper
from opsdrill.store.memory import MemoryStore
from opsdrill.store.store import Owner

SECONDS = 0.6
"""Short, so that leases run out while a test looks on."""
HERE, THERE = Owner("here", "boot", 1, 1), Owner("there", "boot", 2, 2)


class Book:
    """A book that can be made to fail or to stand still."""

    def __init__(self, book: LeaseBook) -> None:
        self._book = book
        self.broken = False
        self.renewed = 0

    def take(self, claim: Claim) -> Turn:
        return self._book.take(claim)

    def renew(self, numbers: Iterable[int]) -> set[int]:
        if self.broken:
            raise StoreError("the disk is full")
        self.renewed += 1
        return self._book.renew(numbers)

    def release(self, number: int) -> None:
        self._book.release(number)

    def leases(self) -> list[Lease]:
        return self._book.leases()

    def sweep(self) -> list[Lease]:
        return self._book.sweep()


class Two:
    """Two processes on one store."""

    def __init__(self) -> None:
        store = MemoryStore()
        self.plain = store.leases(THERE, lambda _: False, seconds=SECONDS)
        self.book = Book(store.leases(HERE, lambda _: False, seconds=SECONDS))
        self.here = LeaseKeeper(self.book, seconds=SECONDS)
        self.there = LeaseKeeper(self.plain, seconds=SECONDS)
        self.told: list[str] = []

    def held(self) -> list[str]:
        return [lease.run for lease in self.plain.leases() if lease.held]


@pytest.fixture
async def two() -> AsyncIterator[Two]:
    made = Two()
    async with asyncio.timeout(30):
        yield made
    await made.here.close()
    await made.there.close()


def claim(run: str, *hosts: str) -> Claim:
    return Claim(run, 1, {f"ssh {host}:22": host for host in hosts})


def unheard(line: str) -> None:
    raise AssertionError(f"nothing should be waited for, yet: {line}")


async def test_a_free_host_is_had_without_a_word_and_given_up_after(two: Two) -> None:
    async with two.here.hold(claim("r1", "web-01"), unheard):
        assert two.held() == ["r1"]
    assert two.plain.leases() == []


async def test_a_lease_is_renewed_for_as_long_as_it_is_held(two: Two) -> None:
    async with two.here.hold(claim("r1", "web-01"), unheard) as held:
        await asyncio.sleep(SECONDS * 2.5)
        assert two.held() == ["r1"]
        assert held.lost is None
    assert two.book.renewed >= 3


async def test_who_waits_says_for_what_once_and_goes_on_when_it_is_free(two: Two) -> None:
    async def other() -> None:
        async with two.there.hold(claim("r2", "web-01"), two.told.append):
            assert two.held() == ["r2"]

    async with two.here.hold(claim("r1", "web-01"), unheard):
        waiting = asyncio.create_task(other())
        await asyncio.sleep(SECONDS * 2)
        assert not waiting.done()
    await waiting
    (line,) = two.told
    assert line.startswith("waiting for web-01, held by run r1 since 20")
    assert two.plain.leases() == []


async def test_who_waits_in_the_same_process_is_woken_at_once(two: Two) -> None:
    """The turn comes with the release, not with the next look a second later."""
    order: list[str] = []

    async def one(run: str) -> None:
        async with two.here.hold(claim(run, "web-01"), lambda _: None):
            order.append(run)
            await asyncio.sleep(0.01)

    await asyncio.gather(*(one(f"r{number:02}") for number in range(20)))
    assert order == sorted(order)


async def test_a_cancelled_wait_leaves_nothing(two: Two) -> None:
    async with two.here.hold(claim("r1", "web-01"), unheard):
        waiting = asyncio.create_task(_enter(two.there.hold(claim("r2", "web-01"), lambda _: None)))
        await asyncio.sleep(0.2)
        assert len(two.plain.leases()) == 2
        waiting.cancel()
        await asyncio.wait({waiting})
        assert waiting.cancelled()
        assert [lease.run for lease in two.plain.leases()] == ["r1"]


async def _enter(held: HeldLease) -> None:
    async with held:
        await asyncio.sleep(100)


async def test_a_cancelled_run_gives_its_lease_up_and_stays_cancelled(two: Two) -> None:
    working = asyncio.create_task(_enter(two.here.hold(claim("r1", "web-01"), unheard)))
    await asyncio.sleep(0.1)
    working.cancel()
    await asyncio.wait({working})
    assert working.cancelled()
    assert two.plain.leases() == []


async def test_a_lease_that_cannot_be_renewed_in_time_stops_the_work(two: Two) -> None:
    """The work is stopped while the lease still holds, before anybody else can have the host."""
    with pytest.raises(LeaseLost) as caught:
        async with two.here.hold(claim("r1", "web-01"), unheard):
            two.book.broken = True
            try:
                await asyncio.sleep(100)
            finally:
                assert two.held() == ["r1"]
    assert caught.value.fault == "infrastructure"
    assert "web-01" in str(caught.value)
    assert "could not be renewed in time (the disk is full)" in str(caught.value)


async def test_a_book_that_fails_once_stops_nothing(two: Two) -> None:
    async with two.here.hold(claim("r1", "web-01"), unheard) as held:
        two.book.broken = True
        await asyncio.sleep(SECONDS / 4)
        two.book.broken = False
        await asyncio.sleep(SECONDS)
        assert held.lost is None


async def test_a_lease_that_another_run_has_by_now_stops_the_work(two: Two) -> None:
    """The process was stopped too long: its number is gone from the book."""
    with pytest.raises(LeaseLost, match="ran out before this process could renew it"):
        async with two.here.hold(claim("r1", "web-01"), unheard) as held:
            two.plain.release(held.number)
            assert two.plain.take(claim("r2", "web-01")).held
            await asyncio.sleep(100)
    assert two.held() == ["r2"]


async def test_work_that_ended_before_the_loss_was_noticed_is_whole(two: Two) -> None:
    async with two.here.hold(claim("r1", "web-01"), unheard) as held:
        two.plain.release(held.number)
    assert asyncio.current_task() is not None


async def test_another_error_of_the_work_goes_through(two: Two) -> None:
    with pytest.raises(ValueError, match="my own"):
        async with two.here.hold(claim("r1", "web-01"), unheard):
            raise ValueError("my own")
    assert two.plain.leases() == []


async def test_after_the_loss_no_command_is_let_through(two: Two) -> None:
    """`lost` tells by the clock alone, before any heartbeat had a chance to notice."""
    now = 0.0
    keeper = LeaseKeeper(two.book, seconds=30, clock=lambda: now)
    async with keeper.hold(claim("r1", "web-01"), unheard) as held:
        for now, lost in ((19.0, None), (21.0, "it was not renewed in time")):  # noqa: B007
            assert held.lost == lost
    await keeper.close()


async def test_a_loss_in_the_moment_the_work_ends_is_told_as_a_loss(two: Two) -> None:
    """Not as a cancellation by somebody, which nobody asked for."""
    with pytest.raises(LeaseLost):
        async with two.here.hold(claim("r1", "web-01"), unheard) as held:
            held.lose("it ran out")
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0)


async def test_a_cancellation_beside_the_loss_stays_a_cancellation(two: Two) -> None:
    """Ctrl-C and the loss at once: the run was stopped by its user."""
    entered: list[HeldLease] = []

    async def work() -> None:
        async with two.here.hold(claim("r1", "web-01"), unheard) as held:
            entered.append(held)
            await asyncio.sleep(100)

    working = asyncio.create_task(work())
    await asyncio.sleep(0.1)
    working.cancel()
    entered[0].lose("it ran out")
    await asyncio.wait({working})
    assert working.cancelled()
