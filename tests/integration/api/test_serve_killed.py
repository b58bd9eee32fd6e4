"""A server that is killed, and what the next start makes of what it left; on real hosts."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from tests.integration.api.server_program import HANGS, PROGRAM, serving
from tests.unit.api.drills import RUNS, small_place

HANGING = """
format: opsdrill.script/1
turns: [{tasks: [{host: web-01, description: wait, do: [{run: 'echo seen'}, {run: 'sleep %s'}]}]}]
resolve: {resolution: success, reasoning: done}
"""
PLAIN = """
key: plain
title: A plain host
ticket_title: Nothing is wrong
hosts: [web-01]
limits: {command_seconds: 300}
validation: [{label: there, validator: host_state, run: 'test -d /etc'}]
"""


def until(true: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + HANGS
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def processes(marker: str) -> list[int]:
    """The processes whose command line holds a marker."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and marker in (entry / "cmdline").read_text(errors="replace"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.fixture
def folder(tmp_path: Path) -> tuple[Path, str]:
    """A place with an agent that hangs on its host, and what that hanging is found by."""
    place = small_place(tmp_path)
    marker = f"86400.{uuid4().int % 10**9}"
    (place.folder / "hanging.yaml").write_text(HANGING % marker)
    with (place.folder / "agents.yaml").open("a") as file:
        file.write("  hanging: {adapter: script, argument: hanging.yaml}\n")
    (place.folder / "opsdrill.toml").write_text('agent-config = "agents.yaml"\n')
    plain = place.folder / "scenarios" / "plain"
    plain.mkdir()
    (plain / "scenario.yaml").write_text(PLAIN)
    return tmp_path, marker


def client(address: str, secret: str) -> httpx.Client:
    return httpx.Client(
        base_url=address, headers={"authorization": f"Bearer {secret}"}, timeout=HANGS
    )


def state(caller: httpx.Client, run: str) -> str:
    return str(caller.get(f"{RUNS}/{run}").json()["state"])


@pytest.mark.sandbox
def test_what_a_killed_server_left_is_interrupted_given_back_and_retried(
    folder: tuple[Path, str],
) -> None:
    """A restart marks what was running, and what waited, and gives the hosts back."""
    home, marker = folder
    order = {"scenarios": ["plain"], "agents": ["hanging"], "lab": "sandbox"}
    with serving(home) as (process, address, secret, _), client(address, secret) as caller:
        [running] = [run["id"] for run in caller.post(RUNS, json=order).json()["runs"]]
        # another batch, of which nothing ever begins
        [waiting] = [run["id"] for run in caller.post(RUNS, json=order).json()["runs"]]
        until(lambda: bool(processes(marker)), "the agent never hung")
        calls = f"{RUNS}/{running}/evidence?kind=call"
        until(lambda: bool(caller.get(calls).json()["items"]), "its calls were never kept")
        assert (state(caller, running), state(caller, waiting)) == ("running", "planned")
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    with serving(home) as (_, address, secret, notes), client(address, secret) as caller:
        until(lambda: not processes(marker), "the host was not given back")
        assert [state(caller, run) for run in (running, waiting)] == ["interrupted"] * 2
        assert any(running in line for line in notes)
        assert any(waiting in line for line in notes)
        evidence = caller.get(f"{RUNS}/{running}/evidence", params={"kind": "call"}).json()
        assert evidence["sealed"]
        assert [item["content"].get("exit_code") for item in evidence["items"]][:1] == [0]
        # Who followed it hears of its end, from where it was cut off.
        with caller.stream("GET", f"{RUNS}/{running}/events") as events:
            assert "event: result" in events.read().decode()
        again = caller.post(f"{RUNS}/{running}/retry").json()["run"]
        until(lambda: bool(processes(marker)), "the retried run never worked")
        assert caller.post(f"{RUNS}/{again}/cancel").json()["state"] == "cancelled"
        assert not processes(marker)
        assert caller.get("/api/v1/leases").json() == {"leases": []}


@pytest.mark.sandbox
def test_the_command_line_and_a_server_work_side_by_side(folder: tuple[Path, str]) -> None:
    """On one data folder; neither takes the other's runs for lost ones."""
    home, _ = folder
    command = [str(PROGRAM), "--home", str(home / "home"), "run", "plain", "--agent", "noop",
               "--lab", "sandbox"]  # fmt: skip
    order = {"scenarios": ["plain"], "agents": ["hanging"], "lab": "sandbox"}
    with serving(home) as (_, address, secret, _), client(address, secret) as caller:
        [run] = [run["id"] for run in caller.post(RUNS, json=order).json()["runs"]]
        [waits] = [run["id"] for run in caller.post(RUNS, json=order).json()["runs"]]
        until(lambda: state(caller, run) == "running", "it never ran")
        done = subprocess.run(
            command, cwd=home / "work", capture_output=True, timeout=HANGS, check=False
        )
        assert done.returncode == 0, done.stderr
        assert b"1 passed of 1" in done.stdout
        assert (state(caller, run), state(caller, waits)) == ("running", "planned")
        listed = caller.get(RUNS, params={"verdict": "passed"}).json()["runs"]
        assert [one["agent"] for one in listed] == ["noop"]
        batch = caller.get(f"{RUNS}/{waits}").json()["batch"]
        assert caller.post(f"/api/v1/batches/{batch}/cancel").json()["cancelled"] == [waits]
        assert caller.post(f"{RUNS}/{run}/cancel").json()["state"] == "cancelled"
