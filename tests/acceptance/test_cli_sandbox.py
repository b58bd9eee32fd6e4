"""On real hosts: the first scenario anybody runs, and what a stop leaves behind: nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.acceptance.program import HANGS, Cli
from tests.acceptance.test_cli_interrupt import rows, until

pytestmark = pytest.mark.sandbox

MARK = "61713"
"""Seconds that hanging commands sleep: a number that no other process has on its command line."""


@pytest.fixture(autouse=True)
def usable(cli: Cli) -> None:
    """Where the sandbox cannot work the skip says what is missing."""
    report = json.loads(cli("doctor", "--format", "json").stdout)
    driver = next(driver for driver in report["drivers"] if driver["name"] == "sandbox")
    for finding in driver["findings"]:
        if finding["blocks"] and not finding["good"]:
            pytest.skip(f"{finding['what']}: {finding['detail']}; {finding['remedy']}")


HANGING = {
    "setup": "  - run: sleep 61713\n",
    "execute": "  - run: 'true'\n",
    "validate": "  - run: 'true'\n",
}
SCRIPT = """\
format: opsdrill.script/1
turns:
  - tasks:
      - host: web-01
        do: [{run: "COMMAND"}]
resolve: {resolution: success}
"""


def drill(cli: Cli, phase: str) -> list[str]:
    """The words of a `run` that hangs in one phase on a sandbox."""
    folder = cli.folder / "hanging"
    folder.mkdir()
    check = f"sleep {MARK}" if phase == "validate" else "test -d /"
    (folder / "scenario.yaml").write_text(
        "key: hanging\ntitle: T\nticket_title: T\nhosts: [web-01, db-01]\n"
        "limits: {command_seconds: 100000}\n"
        f"setup:\n{HANGING[phase]}"
        f"validation:\n  - {{label: L, validator: host_state, run: {check}}}\n"
    )
    command = f"sleep {MARK}" if phase == "execute" else "touch /root/seen"
    (folder / "agent.yaml").write_text(SCRIPT.replace("COMMAND", command))
    return ["run", "./hanging", "--lab", "sandbox", "--agent", "script:agent.yaml"]


def sleeping() -> list[str]:
    """The processes of this machine that a hanging command started, hosts included."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if MARK.encode() in words:
            found.append(str(path))
    return found


def hang(cli: Cli, phase: str) -> subprocess.Popen[bytes]:
    process = cli.start(*drill(cli, phase))
    until(process, f": {phase}\n")
    wait_until(lambda: bool(sleeping()))
    return process


def wait_until(holds: object) -> None:
    deadline = time.monotonic() + HANGS
    assert callable(holds)
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("phase", sorted(HANGING))
def test_kill_9_leaves_nothing_after_the_next_command(cli: Cli, phase: str) -> None:
    """No process and no state of the driver; the run is listed as interrupted."""
    process = hang(cli, phase)
    process.kill()
    process.communicate(timeout=HANGS)
    assert [(row["state"], row["verdict"]) for row in rows(cli)] == [("interrupted", None)]
    wait_until(lambda: not sleeping())
    again = cli("doctor", "--clean")
    assert "nothing was left behind" in again.stdout


@pytest.mark.parametrize("phase", sorted(HANGING))
def test_ctrl_c_on_a_terminal_reaches_every_process_and_leaves_nothing(
    cli: Cli, phase: str
) -> None:
    """A terminal sends it to the whole foreground group, not only to the program."""
    process = subprocess.Popen(
        cli.command(*drill(cli, phase)),
        cwd=cli.folder,
        env=cli.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    until(process, f": {phase}\n")
    wait_until(lambda: bool(sleeping()))
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=HANGS)
    assert process.returncode == 130, err
    assert b"Traceback" not in err
    assert b"1 cancelled of 1" in out
    assert not sleeping()


def test_a_new_folder_runs_as_it_is(cli: Cli) -> None:
    """`init`, then `run` with the script beside it: what a newcomer tries first."""
    cli("init", "my-drill")
    script = next((cli.folder / "my-drill" / "agents").glob("*.yaml")).name
    done = cli("run", "./my-drill", "--agent", f"script:agents/{script}", "--agent", "noop")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed, 1 failed of 2" in done.stdout


def test_show_lists_the_files_that_changed_and_how_long_phases_took(cli: Cli) -> None:
    cli("init", "my-drill")
    script = next((cli.folder / "my-drill" / "agents").glob("*.yaml")).name
    done = cli("run", "./my-drill", "--agent", f"script:agents/{script}", "--format", "json")
    run = json.loads(done.stdout)["run"]
    text = cli("runs", "show", run).stdout
    assert re.search(r"setup +done +[0-9.]+ s", text)
    assert re.search(r"^host .*: sandbox", text, re.MULTILINE)
    assert re.search(r"^  (added|changed|removed) +/", text, re.MULTILINE)


def test_eight_runs_side_by_side_all_come_to_their_end(cli: Cli) -> None:
    cli("init", "my-drill")
    done = cli("run", "./my-drill", "--agent", "reference", "--repeat", "8", "--parallel", "8")
    assert "8 passed of 8" in done.stdout, done.stdout + done.stderr


def test_two_commands_on_one_data_folder_work_side_by_side(cli: Cli) -> None:
    """Neither takes the other's hosts for something left behind."""
    cli("init", "my-drill")
    words = ["run", "./my-drill", "--agent", "reference", "--repeat", "4", "--parallel", "2"]
    both = [cli.start(*words) for _ in range(2)]
    for process in both:
        out, err = process.communicate(timeout=HANGS)
        assert process.returncode == 0, err
        assert b"4 passed of 4" in out
        assert b"interrupted" not in err
    assert len(rows(cli)) == 8
