"""The memory of all hosts on a machine stays under half of what is free."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from opsdrill.hosts.drivers.sandbox.ledger import Ledger, TooBig, free_memory

MIB = 1 << 20


def ledger(folder: Path, free: int) -> Ledger:
    return Ledger(folder, lambda: free * MIB)


async def test_takes_up_to_half(tmp_path: Path) -> None:
    """Hosts may take half of the free memory together, to the byte."""
    said: list[str] = []
    one = ledger(tmp_path, 100)
    await one.take("a", 30 * MIB, said.append)
    await one.take("b", 20 * MIB, said.append)
    assert said == []
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await one.take("c", 1, said.append)
    assert len(said) == 1
    assert "waiting for memory" in said[0]
    one.close()


async def test_too_big_is_said_at_once(tmp_path: Path) -> None:
    """With no other host alive, waiting cannot help."""
    one = ledger(tmp_path, 100)
    with pytest.raises(TooBig, match="51 MiB wanted"):
        await one.take("a", 50 * MIB + 1, print)
    one.close()


async def test_other_processes_count(tmp_path: Path) -> None:
    """What another process took counts, until it gives it back or is gone."""
    one, two = ledger(tmp_path, 100), ledger(tmp_path, 100)
    await one.take("a", 40 * MIB, print)
    waiting = asyncio.ensure_future(two.take("a", 40 * MIB, lambda text: None))
    await asyncio.sleep(0.3)
    assert not waiting.done()
    one.give_back("a")
    async with asyncio.timeout(10):
        await waiting
    one.close()
    two.close()


async def test_the_dead_do_not_count(tmp_path: Path) -> None:
    """A file whose lock nobody holds counts nothing, and `reap` removes it and says so."""
    (tmp_path / "999-dead.bytes").write_text("90000000")
    one = ledger(tmp_path, 100)
    await one.take("a", 50 * MIB, print)
    assert len(one.reap()) == 1
    assert one.reap() == []
    one.close()


async def test_the_living_are_not_reaped(tmp_path: Path) -> None:
    """A file in use stays."""
    one, two = ledger(tmp_path, 100), ledger(tmp_path, 100)
    await one.take("a", MIB, print)
    assert two.reap() == []
    assert one.reap() == []
    one.close()


async def test_giving_back_is_repeatable(tmp_path: Path) -> None:
    """Giving back twice, or what was never taken, gives back nothing more."""
    one = ledger(tmp_path, 100)
    await one.take("a", 30 * MIB, print)
    await one.take("b", 20 * MIB, print)
    one.give_back("a")
    one.give_back("a")
    one.give_back("never")
    await one.take("c", 30 * MIB, print)
    one.close()
    one.close()
    assert list(tmp_path.glob("*.bytes")) == []


def test_free_memory_is_bytes() -> None:
    """`MemAvailable` in bytes: more than a mebibyte, less than all of it."""
    total = int(Path("/proc/meminfo").read_text().split()[1]) * 1024
    assert MIB < free_memory() <= total
