"""Leases over real processes on one data folder: they wait, outlive kills, and stop the paused.

Whichever process a run works in, it has the host to itself; the lease is over with the run, or with
its process.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.acceptance.program import DATA, HANGS, QUEUE, RIGHT, Cli

ROOT = Path(__file__).parents[3]
PROGRAM = Path(__file__).parent / "lasting.py"
RUN = ("run", QUEUE, "--agent", "script:right.yaml", "--lab")


class LastingCli(Cli):
    """The program with the driver `lasting`; its processes are ended with the test."""

    def command(self, *words: str) -> list[str]:
        return [sys.executable, str(PROGRAM), "--home", str(self.home), *words]

    def lab(self, name: str, delay: float = 0) -> str:
        """A lab whose hosts take so long to start the queue."""
        slow = {"run": "start-queue", "exit_code": 0, "delay": delay}
        answers = RIGHT["answers"]
        assert isinstance(answers, list)
        script = {**RIGHT, "answers": [slow, *answers]}
        (self.folder / f"{name}.json").write_text(json.dumps(script))
        path = self.folder / f"{name}.yaml"
        path.write_text(
            f"driver: lasting\noptions: {{answers: {name}.json}}\nhosts: {{mail-01: 10.0.0.1}}\n"
        )
        return str(path)

    def leases(self) -> list[tuple[str, str]]:
        """Who holds the host and who waits, with which run."""
        done = self("hosts", "leases", "--format", "json")
        return [(row["state"], row["run"]) for row in json.loads(done.stdout)["leases"]]

    def rows(self) -> list[dict[str, object]]:
        done = self("runs", "list", "--format", "json")
        found: list[dict[str, object]] = json.loads(done.stdout)["runs"]
        return found


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[LastingCli]:
    folder = tmp_path / "work"
    folder.mkdir()
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environment = {**kept, "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT)}
    assert DATA.is_dir()
    yield LastingCli(folder, tmp_path / "home", environment)


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


def until(process: subprocess.Popen[bytes], words: str) -> str:
    """The first line of progress with these words in it."""
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        seen.append(line.decode())
        if words in seen[-1]:
            return seen[-1]
    raise AssertionError(f"{words!r} was never said: {seen}")


def holding(cli: LastingCli, seconds: float, **environment: str) -> subprocess.Popen[bytes]:
    """A run that has the host and works there for a while."""
    process = cli.start(*RUN, cli.lab("slow", seconds), **environment)
    until(process, ": execute")
    return process


def test_a_second_process_waits_says_for_what_and_then_goes_on(
    cli: LastingCli, started: list[subprocess.Popen[bytes]]
) -> None:
    first = holding(cli, 600)
    second = cli.start(*RUN, cli.lab("quick"))
    started += [first, second]
    line = until(second, "waiting for")
    ((_, holder), (_, waiter)) = cli.leases()
    assert line.startswith(f"stuck-queue: waiting for mail-01, held by run {holder} since 20")
    assert cli.leases() == [("held", holder), ("waiting", waiter)]
    reasons = {str(row["id"]): str(row["reason"]) for row in cli.rows()}
    assert reasons[waiter].startswith(f"waiting for mail-01, held by run {holder} since 20")
    assert reasons[holder] == ""
    first.send_signal(signal.SIGINT)  # it gives the host back
    out, err = second.communicate(timeout=HANGS)
    assert second.returncode == 0, err
    assert b"1 passed of 1" in out
    assert first.wait(HANGS) == 130
    assert cli.leases() == []


def test_the_lease_of_a_killed_process_ends_at_once(
    cli: LastingCli, started: list[subprocess.Popen[bytes]]
) -> None:
    """Not after the 30 seconds of a lease: its process is seen to be gone."""
    first = holding(cli, 600)
    second = cli.start(*RUN, cli.lab("quick"))
    started += [first, second]
    until(second, "waiting for")
    first.kill()
    first.wait()
    killed = time.monotonic()
    _, err = second.communicate(timeout=HANGS)
    assert second.returncode == 0, err
    assert time.monotonic() - killed < 25
    assert cli.leases() == []
    assert sorted(str(row["state"]) for row in cli.rows()) == ["done", "interrupted"]


def test_the_next_start_ends_the_lease_of_a_killed_process(
    cli: LastingCli, started: list[subprocess.Popen[bytes]]
) -> None:
    first = holding(cli, 600)
    started.append(first)
    ((_, run),) = cli.leases()
    first.kill()
    first.wait()
    done = cli(*RUN, cli.lab("quick"))
    assert done.returncode == 0, done.stderr
    assert f"the lease of mail-01 ended: run {run} is no more" in done.stderr
    assert "waiting for" not in done.stderr


def test_who_waits_can_be_stopped_and_leaves_nothing(
    cli: LastingCli, started: list[subprocess.Popen[bytes]]
) -> None:
    first = holding(cli, 600)
    second = cli.start(*RUN, cli.lab("quick"))
    started += [first, second]
    until(second, "waiting for")
    second.send_signal(signal.SIGINT)
    second.communicate(timeout=HANGS)
    assert second.returncode == 130
    assert [state for state, _ in cli.leases()] == ["held"]


def test_who_is_stopped_at_once_leaves_a_lease_that_nobody_waits_for(
    cli: LastingCli, started: list[subprocess.Popen[bytes]]
) -> None:
    first = holding(cli, 600)
    started.append(first)
    first.send_signal(signal.SIGINT)
    time.sleep(0.1)
    first.send_signal(signal.SIGINT)
    _, err = first.communicate(timeout=HANGS)
    assert first.returncode == 130
    assert b"Traceback" not in err
    assert b"never retrieved" not in err
    assert cli.leases() == []
    assert cli(*RUN, cli.lab("quick")).returncode == 0


def pause(process: subprocess.Popen[bytes], store: Path) -> None:
    """Stop a process where it stands, but not while nobody else can write into the store."""
    stat = Path(f"/proc/{process.pid}/stat")
    ends = time.monotonic() + HANGS
    while time.monotonic() < ends:
        process.send_signal(signal.SIGSTOP)
        while stat.read_text().rpartition(") ")[2][0] != "T":
            time.sleep(0.01)
        with closing(sqlite3.connect(store, timeout=0, isolation_level=None)) as database:
            try:
                database.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                process.send_signal(signal.SIGCONT)
                time.sleep(0.05)
            else:
                database.execute("ROLLBACK")
                return
    raise AssertionError("the process was writing whenever it was stopped")


def test_a_paused_process_loses_its_host_and_stops_when_it_wakes(
    cli: LastingCli, started: list[subprocess.Popen[bytes]]
) -> None:
    """A process that was paused and woken does not touch a host whose lease it lost meanwhile."""
    short = {"LEASE_SECONDS": "3"}
    first = holding(cli, 600, **short)
    started.append(first)
    pause(first, cli.home / "store.db")
    second = cli(*RUN, cli.lab("quick"), **short)
    assert second.returncode == 0, second.stderr
    first.send_signal(signal.SIGCONT)
    out, err = first.communicate(timeout=HANGS)
    assert first.returncode == 3, err
    assert b"1 error of 1" in out
    assert b"its lease of the host was lost" in out
    assert b"Traceback" not in err
    assert cli.leases() == []


def test_a_host_check_needs_no_lease(
    cli: LastingCli, started: list[subprocess.Popen[bytes]]
) -> None:
    started.append(holding(cli, 600))
    done = cli("hosts", "check", "--lab", cli.lab("quick"))
    assert done.returncode == 0, done.stderr
