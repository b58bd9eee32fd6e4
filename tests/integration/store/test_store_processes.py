"""Several processes on one data folder, and processes that are killed while they write."""

from __future__ import annotations

import multiprocessing
import random
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path

from opsdrill.errors import UsageError
from opsdrill.model.event import JobEvent, Said
from opsdrill.model.result import Result
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec
from opsdrill.model.scenario import Scenario
from opsdrill.store.folder import DATABASE, FILES
from opsdrill.store.home import open_store
from opsdrill.store.store import Owner, RunFilter

SPAWN = multiprocessing.get_context("spawn")
US = Owner(machine="m", boot="b", pid=1, started=1)
PATIENCE = 60
LARGE = random.Random(0).randbytes(50_000).hex()
"""An event with this text lies in a file."""


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


def in_processes(work: Callable[[Path, int], object], home: Path, count: int = 4) -> list[object]:
    with ProcessPoolExecutor(count, mp_context=SPAWN) as pool:
        waiting = [pool.submit(work, home, n) for n in range(count)]
        return [task.result(timeout=PATIENCE) for task in waiting]


def _whole_run(home: Path, n: int) -> int:
    store, id = open_store(home), f"run-{n}"
    store.plan(spec(id))
    store.begin(id, US)
    for first in range(0, 300, 20):
        store.append_events(id, 1, [said(seq) for seq in range(first, first + 20)])
        assert id in [row.id for row in store.page(RunFilter(state="running")).rows]
    store.finish(id, ended(id), None)
    store.close()
    return n


def test_four_processes_on_a_new_data_folder(tmp_path: Path) -> None:
    """Processes that share a data folder do not get in each other's way."""
    in_processes(_whole_run, tmp_path / "home")
    store = open_store(tmp_path / "home")
    assert sorted(row.id for row in store.page(RunFilter(state="cancelled")).rows) == [
        f"run-{n}" for n in range(4)
    ]
    for n in range(4):
        assert list(store.events(f"run-{n}")) == [said(seq) for seq in range(300)]
    store.close()


def _open_many(home: Path, n: int) -> None:
    for turn in range(10):
        here = home / str(turn)
        here.mkdir(exist_ok=True)
        (here / f"ready-{n}").touch()
        until = time.monotonic() + PATIENCE
        while len(list(here.glob("ready-*"))) < 4 and time.monotonic() < until:
            time.sleep(0.0005)  # all at the same moment, as far as that can be had
        open_store(here / "home").close()


def test_four_processes_make_the_same_new_store_at_once(tmp_path: Path) -> None:
    in_processes(_open_many, tmp_path)


def _same_events(home: Path, n: int) -> None:
    store = open_store(home)
    for seq in range(100):
        store.append_events("run", 1, [(seq, Said(task="t", text=f"by {n}")), said(1000 + seq)])
    store.close()


def test_the_same_event_from_four_processes_is_kept_once(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.plan(spec("run"))
    in_processes(_same_events, tmp_path)
    kept = [seq for seq, _ in store.events("run", attempt=1)]
    assert kept == [*range(100), *range(1000, 1100)]
    store.close()


def _begin(home: Path, n: int) -> bool:
    store = open_store(home)
    try:
        store.begin("run", US)
    except UsageError:
        return False
    finally:
        store.close()
    return True


def test_of_four_processes_one_begins_a_run(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.plan(spec("run"))
    assert sorted(map(bool, in_processes(_begin, tmp_path))) == [False, False, False, True]
    assert store.get("run").attempt == 1
    store.close()


def _come_and_go(home: Path, n: int) -> None:
    """Runs that share one large body, each read back before it is deleted."""
    store = open_store(home)
    event: tuple[int, JobEvent] = (0, Said(task="t", text=LARGE))
    for turn in range(25):
        id = f"run-{n}-{turn}"
        store.plan(spec(id))
        store.append_events(id, 0, [event])
        assert list(store.events(id)) == [event]
        store.delete(id)
    store.close()


def test_a_shared_file_lives_as_long_as_any_run_that_uses_it(tmp_path: Path) -> None:
    in_processes(_come_and_go, tmp_path, 3)
    assert [path for path in (tmp_path / FILES).rglob("*") if path.is_file()] == []


def _write_until_killed(home: Path, report: Connection, first: int, large: bool) -> None:
    store = open_store(home)
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


def _killed(home: Path, first: int, large: bool, after: float) -> int:
    """Let a process write from event `first` on, kill it, and tell how far it said it was."""
    ours, theirs = SPAWN.Pipe(duplex=False)
    process = SPAWN.Process(target=_write_until_killed, args=(home, theirs, first, large))
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


def _sound(home: Path) -> None:
    with closing(sqlite3.connect(home / DATABASE)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def _kill_again_and_again(home: Path, large: bool, delays: Sequence[float]) -> None:
    store = open_store(home)
    store.plan(spec("run"))
    store.begin("run", US)
    first = 0
    for delay in delays:
        said_so = _killed(home, first, large, delay)
        kept = list(store.events("run"))
        assert [seq for seq, _ in kept] == list(range(len(kept))), "no gap"
        assert len(kept) >= said_so, "what was said to be kept is kept"
        assert len(kept) % 5 == 0, "a batch is kept whole or not at all"
        store.append_events("run", 1, [said(len(kept) + n) for n in range(5)])
        _sound(home)
        first = len(kept) + 5
    store.interrupt("run", "killed")
    assert first > 5 * len(delays), "some batches were written before the kills"
    store.close()


def test_kill_9_while_events_are_written(tmp_path: Path) -> None:
    """A run that is killed leaves a readable record up to that point."""
    chance = random.Random(1)
    _kill_again_and_again(tmp_path, False, [chance.uniform(0.01, 0.2) for _ in range(4)])


def test_kill_9_while_large_bodies_are_written(tmp_path: Path) -> None:
    chance = random.Random(2)
    _kill_again_and_again(tmp_path, True, [chance.uniform(0.01, 0.2) for _ in range(4)])
    store = open_store(tmp_path)
    store.delete("run")
    store.close()
    left = [path for path in (tmp_path / FILES).rglob("*") if path.is_file()]
    # A writer killed between the file and its row leaves at most that one file.
    assert len(left) <= 4
