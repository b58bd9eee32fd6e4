"""The store's own thread: order, cancelling, errors."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

from opsdrill.runner.archive import Archive
from opsdrill.store.memory import MemoryStore


@pytest.fixture
def archive() -> Iterator[Archive]:
    made = Archive(MemoryStore())
    yield made
    made.close()


async def test_calls_land_in_order_on_one_thread(archive: Archive) -> None:
    """Calls are made one after the other, in the order handed over, off the loop's thread."""
    seen: list[tuple[int, int]] = []

    def call(number: int) -> int:
        time.sleep(0.001 * (number % 3))
        seen.append((number, threading.get_ident()))
        return number

    landing = [archive.submit(call, number) for number in range(20)]
    assert await archive.keep(call, 20) == 20
    assert [number for number, _ in seen] == list(range(21))
    assert len({thread for _, thread in seen}) == 1
    assert seen[0][1] != threading.get_ident()
    assert [future.result() for future in landing] == list(range(20))


async def test_errors_come_back(archive: Archive) -> None:
    """What the store raises reaches who waits; what nobody waits for disturbs nobody."""

    def call() -> None:
        raise KeyError("r1")

    archive.submit(call)
    with pytest.raises(KeyError, match="r1"):
        await archive.keep(call)


async def test_cancelled_it_lands_first(archive: Archive) -> None:
    """A write that was handed over lands before the cancellation goes on."""
    go, done = threading.Event(), threading.Event()

    def call() -> None:
        go.wait(10)
        done.set()

    keeping = asyncio.create_task(archive.keep(call))
    await asyncio.sleep(0)
    keeping.cancel()
    await asyncio.sleep(0.01)
    assert not keeping.done()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await keeping
    assert done.is_set()


async def test_cancelled_twice_it_does_not_wait(archive: Archive) -> None:
    """A second cancellation does not wait, yet the write still lands."""
    go, done = threading.Event(), threading.Event()

    def call() -> None:
        go.wait(10)
        done.set()

    keeping = asyncio.create_task(archive.keep(call))
    for _ in range(2):
        await asyncio.sleep(0)
        keeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await keeping
    assert not done.is_set()
    go.set()
    archive.close()
    assert done.is_set()
