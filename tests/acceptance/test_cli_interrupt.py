"""Ctrl-C once and twice, SIGTERM, kill -9: what is done is kept, nothing is left."""

from __future__ import annotations

import json
import signal
import subprocess
import time

import pytest
from tests.acceptance.program import HANGS, QUEUE, Cli, lab

SLOW = {
    "setup": {"run": "stop-queue", "exit_code": 0, "delay": 600},
    "execute": {"run": "start-queue", "exit_code": 0, "delay": 600},
    "validate": {"run": "queue-runs", "after": "start-queue", "exit_code": 0, "delay": 600},
}
"""For each phase the command that hangs in it."""
PHASES = sorted(SLOW)


def begun(cli: Cli, phase: str, *more: str) -> subprocess.Popen[bytes]:
    """A `run` of several repetitions whose first one is in the middle of a phase."""
    process = cli.start(
        "run", QUEUE, "--lab", lab(cli, SLOW[phase]), "--agent", "script:right.yaml", *more
    )
    until(process, f": {phase}\n")
    return process


def until(process: subprocess.Popen[bytes], words: str) -> None:
    """Wait for a line of progress that ends with these words, and for what it announces."""
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        seen.append(line)
        if line.endswith(words.encode()):
            time.sleep(0.2)  # the phase has begun; its command follows at once
            return
    raise AssertionError(f"{words!r} was never said: {seen}, {process.communicate()}")


def rows(cli: Cli) -> list[dict[str, object]]:
    done = cli("runs", "list", "--format", "json")
    found: list[dict[str, object]] = json.loads(done.stdout)["runs"]
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("phase", PHASES)
def test_once_gives_hosts_back_keeps_what_is_done_and_exits_with_130(
    cli: Cli, phase: str, number: signal.Signals
) -> None:
    """An interrupted run is nobody's failure: it has no verdict."""
    process = begun(cli, phase, "--repeat", "3")
    process.send_signal(number)
    out, err = process.communicate(timeout=HANGS)
    assert process.returncode == 130, err
    assert b"Traceback" not in err
    assert b"interrupted: 0 of 3 runs are done and kept" in err
    assert b"hint: to do the rest: opsdrill run " + QUEUE.encode() in err
    assert f" --home {cli.home} --repeat 3".encode() in err
    assert b"3 cancelled of 3" in out
    assert [(row["state"], row["verdict"]) for row in rows(cli)] == [("cancelled", None)] * 3


@pytest.mark.parametrize("phase", PHASES)
def test_twice_ends_at_once_with_130(cli: Cli, phase: str) -> None:
    process = begun(cli, phase)
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=HANGS)
    assert process.returncode == 130, err
    assert b"Traceback" not in err
    assert time.monotonic() - started < 30
    assert [row["verdict"] for row in rows(cli)] == [None]
    assert rows(cli)[0]["state"] in ("cancelled", "interrupted")


@pytest.mark.parametrize("phase", PHASES)
def test_a_killed_run_is_listed_as_interrupted_by_the_next_command(cli: Cli, phase: str) -> None:
    process = begun(cli, phase)
    process.kill()
    process.communicate(timeout=HANGS)
    found = rows(cli)
    assert [(row["state"], row["verdict"]) for row in found] == [("interrupted", None)]
    run = str(found[0]["id"])
    assert "interrupted" in cli("runs", "show", run).stdout
    if phase != "setup":
        record = json.loads(cli("runs", "evidence", run).stdout)
        assert record["tasks"][0]["host"] == "mail-01"


def test_runs_that_a_killed_process_never_began_are_interrupted_too(cli: Cli) -> None:
    process = begun(cli, "setup", "--repeat", "3")
    process.kill()
    process.communicate(timeout=HANGS)
    assert [(row["state"], row["verdict"]) for row in rows(cli)] == [("interrupted", None)] * 3


def test_what_was_done_before_the_interruption_is_kept(cli: Cli) -> None:
    """The first run is over when the second one hangs."""
    slow = {"run": "rm -rf /var/spool/queue", "exit_code": 0, "delay": 600}
    process = cli.start(
        "run", QUEUE, "--lab", lab(cli, slow),
        "--agent", "script:right.yaml", "--agent", "script:wrong.yaml", "--format", "json",
    )  # fmt: skip
    until(process, "wrong.yaml: execute\n")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=HANGS)
    assert process.returncode == 130
    results = json.loads(out)["results"]
    assert [(item["state"], item["verdict"]) for item in results] == [
        ("done", "passed"),
        ("cancelled", None),
    ]
    assert b"interrupted: 1 of 2 runs are done and kept" in err
    assert b"--agent script:wrong.yaml" in err
    assert b"--agent script:right.yaml" not in err


def test_130_comes_before_3_and_1(cli: Cli) -> None:
    slow = {"run": "rm -rf /var/spool/queue", "exit_code": 0, "delay": 600}
    late = {"run": "queue-runs", "after": "start-queue", "unreachable": True}
    process = cli.start(
        "run", QUEUE, "--lab", lab(cli, slow, late), "--fail-on", "failed",
        "--agent", "script:right.yaml", "--agent", "noop", "--agent", "script:wrong.yaml",
    )  # fmt: skip
    until(process, "wrong.yaml: execute\n")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=HANGS)
    assert process.returncode == 130
    assert b"1 failed, 1 error, 1 cancelled of 3" in out
