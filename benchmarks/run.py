"""A whole run that does nothing, beside the bare work on its hosts, in one process.

    .venv/bin/python benchmarks/run.py [--rounds N]

Two hosts, two setup steps, three rules, the agent `noop`. The peer does by hand, on the same
driver, what the hosts have to do in such a run: they are made, run the four commands, and are
removed. What is left between the two is ours: phases, records, grading and the store.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from opsdrill.hosts.driver import Driver, DriverContext
from opsdrill.hosts.drivers.sandbox.driver import SandboxDriver
from opsdrill.model.host import Command
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec
from opsdrill.model.scenario import Scenario
from opsdrill.patterns import BoundedSearcher
from opsdrill.runner.archive import Archive
from opsdrill.runner.owner import this_process
from opsdrill.runner.run import run
from opsdrill.runner.tools import RunTools
from opsdrill.store.home import open_store

SCENARIO = Scenario.model_validate(
    {
        "key": "nothing-to-do",
        "title": "Nothing to do",
        "ticket_title": "All is well",
        "hosts": ["web-01", "db-01"],
        "setup": [{"run": "touch /srv/a"}, {"run": "touch /srv/b", "on": "db-01"}],
        "validation": [
            {"label": "a is there", "validator": "host_state", "run": "test -e /srv/a"},
            {"label": "b is there", "validator": "host_state", "run": "test -e /srv/b",
             "on": "db-01"},
            {"label": "no task", "validator": "task_count", "max": 0},
        ],
    }
)  # fmt: skip
COMMANDS = (
    ("web-01", "touch /srv/a"),
    ("db-01", "touch /srv/b"),
    ("web-01", "test -e /srv/a"),
    ("db-01", "test -e /srv/b"),
)


def spec(number: int) -> RunSpec:
    return RunSpec(
        id=f"bench-{number}",
        scenario=SCENARIO,
        scenario_version=SCENARIO.version(),
        agent=AgentChoice(adapter="noop"),
        lab=LabChoice(name="sandbox", driver="sandbox"),
        created_at=datetime.now(UTC),
    )


async def by_hand(driver: Driver, number: int) -> float:
    start = time.perf_counter()
    fleet = await driver.provision(f"hand-{number}", SCENARIO.hosts)
    for name, text in COMMANDS:
        answer = await fleet.hosts[name].run(Command(run=text))
        assert answer.exit_code == 0, answer
    await fleet.release()
    return time.perf_counter() - start


async def whole(tools: RunTools, number: int) -> float:
    planned = spec(number)
    await tools.archive.keep(tools.archive.store.plan, planned)
    start = time.perf_counter()
    result = await run(planned, tools)
    took = time.perf_counter() - start
    assert result.verdict == "passed", result.reason
    return took


async def measure(rounds: int, folder: Path) -> tuple[list[float], list[float]]:
    driver = SandboxDriver(DriverContext(folder / "driver"))
    (folder / "driver").mkdir()
    hand, ours = [], []
    with BoundedSearcher() as searcher:
        archive = Archive(open_store(folder / "home"))
        tools = RunTools(archive, lambda _lab: driver, searcher, this_process())
        try:
            for number in range(rounds + 2):
                hand.append(await by_hand(driver, number))
                ours.append(await whole(tools, number))
        finally:
            await driver.close()
            archive.close()
    return hand[2:], ours[2:]  # the first ones start the fork server and load code


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="opsdrill-bench-") as folder:
        hand, ours = asyncio.run(measure(rounds, Path(folder)))
    by_hand_ms, whole_ms = (statistics.median(figures) * 1000 for figures in (hand, ours))
    print(f"by hand on the driver  {by_hand_ms:7.1f} ms (median of {rounds})")
    print(f"a whole no-op run      {whole_ms:7.1f} ms, {whole_ms / by_hand_ms:.2f} times as long")
    return 0


if __name__ == "__main__":
    sys.exit(main())
