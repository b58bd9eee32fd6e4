"""Whole runs on real hosts with a real store: what passes, what limits end, what kills leave."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from opsdrill.grading.engine import grade
from opsdrill.hosts.driver import DRIVERS, Driver, DriverContext
from opsdrill.model.result import PhaseName, Result
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec, StoredFile
from opsdrill.model.scenario import Scenario
from opsdrill.patterns import BoundedSearcher
from opsdrill.runner.archive import Archive
from opsdrill.runner.inprocess import InProcessEngine
from opsdrill.runner.owner import this_process
from opsdrill.runner.reap import reap
from opsdrill.runner.tools import RunTools
from opsdrill.store.home import open_store
from opsdrill.store.store import Store

pytestmark = pytest.mark.sandbox

CHECK = {"label": "mended", "validator": "host_state", "run": "grep -qx good /etc/app.conf"}
MENDING = "turns: [{tasks: [{host: app-01, do: [{run: 'echo good >/etc/app.conf'}]}]}]"
LOOKING = "turns: [{tasks: [{host: app-01, do: [{run: 'cat /etc/app.conf'}]}]}]"


def spec(folder: Path, turns: str, **scenario: object) -> RunSpec:
    """A run of the script agent on one sandbox host whose configuration is bad."""
    (folder / "agent.yaml").write_text(
        f"format: opsdrill.script/1\n{turns}\nresolve: {{resolution: success, reasoning: done}}\n"
    )
    made = Scenario.model_validate(
        {
            "key": "app",
            "title": "A bad configuration",
            "ticket_title": "The application does not start",
            "hosts": ["app-01"],
            "requires": ["grep"],
            "setup": [{"run": "echo bad >/etc/app.conf"}],
            "ready": [{"run": "grep -qx good /etc/app.conf", "fails": True}],
            "validation": [CHECK],
            **scenario,
        }
    )
    return RunSpec(
        id=f"r-{uuid4().hex[:8]}",
        scenario=made,
        scenario_version=made.version(),
        agent=AgentChoice(adapter="script", argument="agent.yaml", folder=str(folder)),
        lab=LabChoice(name="sandbox", driver="sandbox"),
        created_at=datetime.now(UTC),
    )


@pytest.fixture
async def driver(tmp_path: Path) -> AsyncIterator[Driver]:
    made = DRIVERS.get("sandbox")(DriverContext(tmp_path / "home" / "drivers"))
    blocked = [f for f in await made.preflight() if f.blocks and not f.good]
    try:
        if blocked:
            pytest.skip(f"no sandbox hosts here: {blocked[0].detail}; {blocked[0].remedy}")
        yield made
    finally:
        await made.close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(tmp_path / "home")) as made:
        yield made


@contextmanager
def engine_for(store: Store, driver: Driver) -> Iterator[InProcessEngine]:
    archive = Archive(store)
    try:
        with BoundedSearcher() as searcher:
            tools = RunTools(archive, lambda _lab: driver, searcher, this_process())
            yield InProcessEngine(tools, parallel=2)
    finally:
        archive.close()


async def worked_off(engine: InProcessEngine, run: RunSpec) -> Result:
    await engine.submit([run])
    async with asyncio.timeout(60):
        async for event in engine.subscribe([run.id]):
            if event.result is not None:
                return event.result
    raise AssertionError("no result")


def processes(marker: str) -> list[int]:
    """The processes of this machine that have `marker` on their command line."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                line = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if marker.encode() in line:
                found.append(int(folder.name))
    return found


def wait_for(what: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come to that in time"
        time.sleep(0.02)


async def test_a_right_fix_passes_and_an_empty_claim_fails(
    tmp_path: Path, store: Store, driver: Driver
) -> None:
    """The same drill passes when the agent mended the host and fails when it only looked."""
    with engine_for(store, driver) as engine:
        mended = await worked_off(engine, spec(tmp_path, MENDING))
        claimed = await worked_off(engine, spec(tmp_path, LOOKING))
    assert (mended.verdict, mended.reason) == ("passed", mended.reason), mended
    assert (claimed.verdict, claimed.fault) == ("failed", "agent"), claimed
    assert mended.run is not None
    ((facts, changed),) = store.hosts(mended.run)
    assert facts.driver == "sandbox"
    assert [(file.path, file.change) for file in changed or ()] == [("/etc/app.conf", "changed")]


PRELOADING = "turns: [{tasks: [{host: app-01, do: [{run: 'echo /x.so >/etc/ld.so.preload'}]}]}]"


async def test_what_checks_are_run_by_was_changed(
    tmp_path: Path, store: Store, driver: Driver
) -> None:
    """An agent that gets between a rule's command and its answer does not go unnoticed."""
    with engine_for(store, driver) as engine:
        result = await worked_off(engine, spec(tmp_path, PRELOADING))
    assert result.warnings == (
        "what host app-01 answered to rules may be made up:"
        " /etc/ld.so.preload was changed after setup",
    )


async def test_a_regrade_of_what_was_kept_is_the_same_grade(
    tmp_path: Path, store: Store, driver: Driver
) -> None:
    """Law 2: grading what the store holds gives the grade that the run got."""
    run = spec(tmp_path, MENDING)
    with engine_for(store, driver) as engine:
        await worked_off(engine, run)
    (kept,) = store.grades(run.id)
    record = store.record(run.id)
    assert record is not None
    with BoundedSearcher() as searcher:
        version = run.scenario_version
        again = grade(
            run.scenario, record, store.answers(run.id), searcher, scenario_version=version
        )
    assert again == kept.grade


async def test_files_and_requirements(tmp_path: Path, store: Store, driver: Driver) -> None:
    """A support file is there for setup, with its mode; a missing command stops the run."""
    digest = store.put_file(b"#!/bin/sh\necho bad >/etc/app.conf\n")
    files = (StoredFile(source="break.sh", digest=digest, size=1),)
    wanted = [{"from": "break.sh", "to": "/opt/break.sh", "mode": "0755"}]
    setup = [{"run": "/opt/break.sh"}]
    with engine_for(store, driver) as engine:
        run = spec(tmp_path, MENDING, files=wanted, setup=setup).model_copy(update={"files": files})
        assert (await worked_off(engine, run)).verdict == "passed"
        needy = spec(tmp_path, MENDING, requires=["no-such-command", "grep"])
        result = await worked_off(engine, needy)
    assert (result.verdict, result.fault) == ("error", "author")
    assert "app-01 lacks no-such-command," in result.reason
    assert store.record(needy.id) is None


async def test_the_job_limit_ends_the_agents_command(
    tmp_path: Path, store: Store, driver: Driver
) -> None:
    """At the limit what the agent runs on the host is ended, and the host is graded."""
    marker = f"86400.{uuid4().int % 10**9}"
    turns = f"turns: [{{tasks: [{{host: app-01, do: [{{run: 'setsid sleep {marker}; true'}}]}}]}}]"
    gone = {"label": "no more", "validator": "host_state", "run": f"! pgrep -f 'sleep {marker}'"}
    limits = {"job_seconds": 1, "command_seconds": 50}
    run = spec(tmp_path, turns, limits=limits, validation=[gone])
    with engine_for(store, driver) as engine:
        result = await worked_off(engine, run)
    assert (result.verdict, result.fault) == ("failed", "agent"), result
    assert result.completion is not None
    assert "1 s" in result.completion.reason
    assert [rule.status for rule in result.rules] == ["passed"], result.rules
    assert processes(marker) == []


PHASES_TO_KILL: list[PhaseName] = ["setup", "execute", "validate"]


@pytest.mark.parametrize("phase", PHASES_TO_KILL)
async def test_a_killed_process_leaves_nothing(
    tmp_path: Path, store: Store, driver: Driver, phase: PhaseName
) -> None:
    """kill -9 in any phase: no process stays, and the next start marks the run interrupted."""
    marker = f"86400.{uuid4().int % 10**9}"
    hang = f"sleep {marker}"
    text = f"sh -c '{hang} & echo bad >/etc/app.conf; wait'"
    turns = MENDING
    more: dict[str, object] = {"limits": {"command_seconds": 300}}
    if phase == "setup":
        more["setup"] = [{"run": text}]
    elif phase == "validate":
        more["validation"] = [{**CHECK, "run": text}]
    else:
        do = f"do: [{{run: 'echo seen'}}, {{run: '{hang}'}}]"
        turns = f"turns: [{{tasks: [{{host: app-01, {do}}}]}}]"
    run = spec(tmp_path, turns, **more)
    (tmp_path / "spec.json").write_text(run.model_dump_json(by_alias=True))
    program = str(Path(__file__).with_name("one_run.py"))
    command = [sys.executable, program, str(tmp_path / "home"), str(tmp_path / "spec.json")]
    with subprocess.Popen(command) as process:
        wait_for(lambda: bool(processes(marker)) or process.poll() is not None)
        assert process.poll() is None, "the run ended before it could be killed"
        assert store.get(run.id).phases[-1].name == phase
        if phase == "execute":
            wait_for(lambda: len(list(store.events(run.id))) >= 5)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    wait_for(lambda: not processes(marker))

    archive = Archive(store)
    lines = await reap(archive, [driver])
    assert any(run.id in line for line in lines)
    stored = store.get(run.id)
    assert stored.state == "interrupted"
    assert stored.result is not None
    assert stored.result.verdict is None
    assert stored.phases[-1].status == "interrupted"
    assert store.grades(run.id) == []
    if phase != "setup":
        record = store.record(run.id)
        assert record is not None
        assert record.tasks[0].tool_calls[0].exit_code == 0
    assert await reap(archive, [driver]) == []
    archive.close()
