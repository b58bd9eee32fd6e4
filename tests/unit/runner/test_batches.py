"""Events on their way to the store: nothing lost, few writes, errors told."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from opsdrill.errors import StoreError
from opsdrill.model.event import JobEvent, Said
from opsdrill.runner.archive import Archive
from opsdrill.runner.batches import BATCH_EVENTS, EventBatches
from opsdrill.store.memory import MemoryStore


class Sizes(MemoryStore):
    """Notes how the events came."""

    def __init__(self, *, full: bool = False) -> None:
        super().__init__()
        self.came: list[tuple[int, ...]] = []
        self.full = full

    def append_events(self, run: str, attempt: int, events: Sequence[tuple[int, JobEvent]]) -> None:
        if self.full:
            raise StoreError("the disk is full")
        self.came.append(tuple(seq for seq, _ in events))


def said(number: int) -> Said:
    return Said(task="t1", text=str(number))


async def test_events_go_in_batches() -> None:
    """Many events make few writes, none larger than the bound, none lost, in order."""
    archive, told = Archive(store := Sizes()), list[JobEvent]()
    batches = EventBatches(archive, "r1", 1, told.append)
    for number in range(1001):
        batches.append(number, said(number))
    await batches.flush()
    archive.close()
    assert [seq for batch in store.came for seq in batch] == list(range(1001))
    assert max(map(len, store.came)) == BATCH_EVENTS
    assert len(store.came) == 6
    assert len(told) == 1001


async def test_a_lone_event_does_not_wait_for_others() -> None:
    """Without a flush an event is kept soon after it came."""
    archive = Archive(store := Sizes())
    batches = EventBatches(archive, "r1", 1, lambda _event: None)
    batches.append(0, said(0))
    async with asyncio.timeout(10):
        while not store.came:
            await asyncio.sleep(0.01)
    archive.close()
    assert store.came == [(0,)]


async def test_events_from_other_threads() -> None:
    """An event reported by another thread is kept and told on the loop's thread."""
    archive, threads = Archive(store := Sizes()), set[int]()
    batches = EventBatches(archive, "r1", 1, lambda _event: threads.add(threading.get_ident()))
    await asyncio.to_thread(batches.append, 0, said(0))
    await batches.flush()
    archive.close()
    assert store.came == [(0,)]
    assert threads == {threading.get_ident()}


async def test_a_batch_that_cannot_be_kept() -> None:
    """`broken` is done with the store's error as soon as a batch fails; `flush` raises it."""
    archive = Archive(Sizes(full=True))
    batches = EventBatches(archive, "r1", 1, lambda _event: None)
    batches.append(0, said(0))
    async with asyncio.timeout(10):
        await asyncio.wait({batches.broken})
    assert isinstance(batches.broken.exception(), StoreError)
    with pytest.raises(StoreError, match="full"):
        await batches.flush()
    archive.close()
