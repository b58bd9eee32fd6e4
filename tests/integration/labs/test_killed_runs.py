"""OpsDrill is killed at random moments on every kind of lab: the next command leaves nothing."""

from __future__ import annotations

import json
import random
import signal
import time
from pathlib import Path

import pytest
from tests.acceptance.program import Cli
from tests.integration.labs.conftest import Labs

SCENARIO = "web-config"
KILLS, RUNS = 6, 3
"""Processes that are killed on each lab, and the runs of each: 54 on the three labs."""


def remains(labs: Labs) -> list[str]:
    """Containers and networks that are ours."""
    label = "--filter=label=opsdrill.run"
    found = labs.engine.ask("ps", "-aq", label).split()
    found += labs.engine.ask("network", "ls", "-q", label).split()
    return found


def family(pid: int) -> set[str]:
    """A process and all below it, each as the control groups it makes name it."""
    try:
        start = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
        below = [each.read_text() for each in Path(f"/proc/{pid}/task").glob("*/children")]
    except (FileNotFoundError, ProcessLookupError):
        return set()
    found = {f"opsdrill-{pid}-{start}"}
    return found.union(*(family(int(child)) for line in below for child in line.split()))


def groups(makers: set[str]) -> list[Path]:
    """Control groups that these processes made: others may be at work on this machine."""
    found = Path("/sys/fs/cgroup").glob("**/opsdrill-*")
    return [path for path in found if path.name.rpartition("-")[0] in makers]


@pytest.mark.parametrize("lab", ["sandbox", "container", "ssh"])
def test_nothing_is_left_after_the_next_start(cli: Cli, labs: Labs, lab: str) -> None:
    """No container, network, lease, control group or file of a killed process stays."""
    chance = random.Random(lab)
    temporary = cli.folder / "tmp"
    temporary.mkdir()
    cli.environment["TMPDIR"] = str(temporary)
    (cli.folder / "lab.yaml").write_text(json.dumps(labs.get(lab, SCENARIO)))
    words = ["run", SCENARIO, "--agent", "reference"]
    words += ["--repeat", str(RUNS), "--parallel", str(RUNS)]
    begun = time.monotonic()
    assert cli(*words).returncode == 0
    whole = time.monotonic() - begun
    makers: set[str] = set()
    for _ in range(KILLS):
        process = cli.start(*words)
        time.sleep(whole * chance.uniform(0.3, 0.9))
        makers |= family(process.pid)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    last = cli("run", SCENARIO, "--agent", "reference", "--format", "json")
    assert last.returncode == 0, last.stderr
    assert json.loads(last.stdout)["verdict"] == "passed"
    listed = json.loads(cli("runs", "list", "--format", "json").stdout)["runs"]
    assert {run["state"] for run in listed} == {"done", "interrupted"}
    assert remains(labs) == []
    assert json.loads(cli("hosts", "leases", "--format", "json").stdout)["leases"] == []
    kept = [path for path in temporary.rglob("*") if not path.name.endswith(".lock")]
    assert [path for path in kept if path.is_file() and path.stat().st_size] == []
    assert groups(makers) == []
