"""Several processes on one store, in a data folder or on a server, and processes that are killed
while they write."""

from __future__ import annotations

import multiprocessing
import random
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeVar

import pytest
from tests.integration import postgres

from opsdrill.errors import UsageError
from opsdrill.model.event import JobEvent, Said
from opsdrill.model.result import Result
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec
from opsdrill.model.scenario import Scenario
from opsdrill.store.folder import DATABASE, FILES
from opsdrill.store.home import open_store
from opsdrill.store.store import Owner, RunFilter, Store

P = TypeVar("P")
SPAWN = multiprocessing.get_context("spawn")
US = Owner(machine="m", boot="b", pid=1, started=1)
PATIENCE = 60
LARGE = random.Random(0).randbytes(50_000).hex()
"""An event with this text lies in a file."""


@dataclass(frozen=True)
class Where:
    """Where a store is, as it is told to another process."""

    home: Path
    url: str | None = None

    def open(self) -> Store:
        return open_store(self.home, self.url)


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Where]:
    (where,) = _places(request.param, tmp_path, 1)
    yield where
    _forget(where)


def _places(kind: str, folder: Path, count: int) -> list[Where]:
    """Places where there is no store yet."""
    homes = [folder / f"home-{n}" for n in range(count)]
    if kind == "sqlite":
        return [Where(home) for home in homes]
    return [Where(home, postgres.server().new_database()) for home in homes]


def _forget(where: Where) -> None:
    if where.url is not None:
        postgres.server().drop(where.url)


def spec(id: str) -> RunSpec:
    return RunSpec(
        id=id,
        scenario=Scenario(key="disk-full", title="A full disk", ticket_title="Help"),
        scenario_version="v",
        agent=AgentChoice(adapter="noop"),
        lab=LabChoice(name="sandbox", driver="sandbox"),
        created_at=datetime.now(UTC),
    )


def ended(id: str) -> Result:
    return Result(
        run=id, scenario="disk-full", agent="noop", scenario_version="v", state="cancelled"
    )


def said(n: int) -> tuple[int, JobEvent]:
    return n, Said(task="t", text=f"line {n}")


def in_processes(work: Callable[[P, int], object], place: P, count: int = 4) -> list[object]:
    with ProcessPoolExecutor(count, mp_context=SPAWN) as pool:
        waiting = [pool.submit(work, place, n) for n in range(count)]
        return [task.result(timeout=PATIENCE) for task in waiting]


def _whole_run(where: Where, n: int) -> int:
    store, id = where.open(), f"run-{n}"
    store.plan(spec(id))
    store.begin(id, US)
    for first in range(0, 300, 20):
        store.append_events(id, 1, [said(seq) for seq in range(first, first + 20)])
        assert id in [row.id for row in store.page(RunFilter(state="running")).rows]
    store.finish(id, ended(id), None)
    store.close()
    return n


def test_four_processes_on_a_new_data_folder(where: Where) -> None:
    """Processes that share a data folder do not get in each other's way."""
    in_processes(_whole_run, where)
    store = where.open()
    assert sorted(row.id for row in store.page(RunFilter(state="cancelled")).rows) == [
        f"run-{n}" for n in range(4)
    ]
    for n in range(4):
        assert list(store.events(f"run-{n}")) == [said(seq) for seq in range(300)]
    store.close()


def _open_many(places: list[Where], n: int) -> None:
    for where in places:
        where.home.mkdir(exist_ok=True)
        (where.home / f"ready-{n}").touch()
        until = time.monotonic() + PATIENCE
        while len(list(where.home.glob("ready-*"))) < 4 and time.monotonic() < until:
            time.sleep(0.0005)  # all at the same moment, as far as that can be had
        where.open().close()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_four_processes_make_the_same_new_store_at_once(kind: str, tmp_path: Path) -> None:
    places = _places(kind, tmp_path, 10)
    in_processes(_open_many, places)
    for where in places:
        _forget(where)


def _same_events(where: Where, n: int) -> None:
    store = where.open()
    for seq in range(100):
        store.append_events("run", 1, [(seq, Said(task="t", text=f"by {n}")), said(1000 + seq)])
    store.close()


def test_the_same_event_from_four_processes_is_kept_once(where: Where) -> None:
    store = where.open()
    store.plan(spec("run"))
    in_processes(_same_events, where)
    kept = [seq for seq, _ in store.events("run", attempt=1)]
    assert kept == [*range(100), *range(1000, 1100)]
    store.close()


def _begin(where: Where, n: int) -> bool:
    store = where.open()
    try:
        store.begin("run", US)
    except UsageError:
        return False
    finally:
        store.close()
    return True


def test_of_four_processes_one_begins_a_run(where: Where) -> None:
    store = where.open()
    store.plan(spec("run"))
    assert sorted(map(bool, in_processes(_begin, where))) == [False, False, False, True]
    assert store.get("run").attempt == 1
    store.close()


def _come_and_go(where: Where, n: int) -> None:
    """Runs that share one large body, each read back before it is deleted."""
    store = where.open()
    event: tuple[int, JobEvent] = (0, Said(task="t", text=LARGE))
    for turn in range(25):
        id = f"run-{n}-{turn}"
        store.plan(spec(id))
        store.append_events(id, 0, [event])
        assert list(store.events(id)) == [event]
        store.delete(id)
    store.close()


def test_a_shared_file_lives_as_long_as_any_run_that_uses_it(where: Where) -> None:
    in_processes(_come_and_go, where, 3)
    assert [path for path in (where.home / FILES).rglob("*") if path.is_file()] == []


def _write_until_killed(where: Where, report: Connection, first: int, large: bool) -> None:
    store = where.open()
    report.send(-1)
    seq = first
    while True:
        batch: list[tuple[int, JobEvent]] = [said(seq + n) for n in range(5)]
        if large:
            text = random.Random(seq).randbytes(30_000).hex()
            batch[4] = (seq + 4, Said(task="t", text=text))
        store.append_events("run", 1, batch)
        seq += 5
        report.send(seq)


def _killed(where: Where, first: int, large: bool, after: float) -> int:
    """Let a process write from event `first` on, kill it, and tell how far it said it was."""
    ours, theirs = SPAWN.Pipe(duplex=False)
    process = SPAWN.Process(target=_write_until_killed, args=(where, theirs, first, large))
    process.start()
    theirs.close()
    assert ours.poll(PATIENCE), "the process came up"
    ours.recv()
    time.sleep(after)
    process.kill()
    process.join(PATIENCE)
    said_so = first
    try:
        while ours.poll(0):
            said_so = ours.recv()
    except (EOFError, OSError):
        pass
    ours.close()
    process.close()
    return said_so


def _sound(where: Where) -> None:
    if where.url is not None:
        return  # a server sees to that itself
    with closing(sqlite3.connect(where.home / DATABASE)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def _kill_again_and_again(where: Where, large: bool, delays: Sequence[float]) -> None:
    store = where.open()
    store.plan(spec("run"))
    store.begin("run", US)
    first = 0
    for delay in delays:
        said_so = _killed(where, first, large, delay)
        kept = list(store.events("run"))
        assert [seq for seq, _ in kept] == list(range(len(kept))), "no gap"
        assert len(kept) >= said_so, "what was said to be kept is kept"
        assert len(kept) % 5 == 0, "a batch is kept whole or not at all"
        store.append_events("run", 1, [said(len(kept) + n) for n in range(5)])
        _sound(where)
        first = len(kept) + 5
    store.interrupt("run", "killed")
    assert first > 5 * len(delays), "some batches were written before the kills"
    store.close()


def test_kill_9_while_events_are_written(where: Where) -> None:
    """A run that is killed leaves a readable record up to that point."""
    chance = random.Random(1)
    _kill_again_and_again(where, False, [chance.uniform(0.01, 0.2) for _ in range(4)])


def test_kill_9_while_large_bodies_are_written(where: Where) -> None:
    chance = random.Random(2)
    _kill_again_and_again(where, True, [chance.uniform(0.01, 0.2) for _ in range(4)])
    store = where.open()
    store.delete("run")
    store.close()
    left = [path for path in (where.home / FILES).rglob("*") if path.is_file()]
    # A writer killed between the file and its row leaves at most that one file.
    assert len(left) <= 4
