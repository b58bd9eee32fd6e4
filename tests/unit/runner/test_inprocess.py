"""What only the engine in this process does: a store that fails, followers that go away."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from weakref import ref

import pytest

from opsdrill.errors import StoreError, UsageError
from opsdrill.evidence.mask import Mask
from opsdrill.hosts.driver import DriverContext
from opsdrill.hosts.drivers.fake import FakeDriver
from opsdrill.hosts.drivers.fake_script import FakeScript, Scripted
from opsdrill.model.result import Grade, Result
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec
from opsdrill.model.scenario import Scenario
from opsdrill.patterns import BoundedSearcher
from opsdrill.runner.archive import Archive
from opsdrill.runner.inprocess import InProcessEngine
from opsdrill.runner.owner import this_process
from opsdrill.runner.tools import RunTools, new_run_id
from opsdrill.store.memory import MemoryStore


class Failing(MemoryStore):
    """Cannot keep the result of one run."""

    def finish(self, run: str, result: Result, grade: Grade | None) -> None:
        if run == "bad":
            raise StoreError("the disk is gone")
        super().finish(run, result, grade)


def spec(id: str) -> RunSpec:
    return RunSpec(
        id=id,
        scenario=Scenario.model_validate({"key": "d", "title": "D", "ticket_title": "T"}),
        scenario_version="1",
        agent=AgentChoice(adapter="noop"),
        lab=LabChoice(name="fake", driver="fake"),
        created_at=datetime.now(UTC),
    )


@pytest.fixture
async def tools(tmp_path: Path) -> AsyncIterator[RunTools]:
    driver = FakeDriver(DriverContext(tmp_path), FakeScript(otherwise=Scripted(exit_code=0)))
    archive = Archive(Failing())
    with BoundedSearcher() as searcher:
        yield RunTools(archive, lambda _lab: driver, searcher, this_process())
    archive.close()


async def test_a_store_that_fails(tools: RunTools) -> None:
    """A run whose result cannot be kept is told as an error, and the next one goes on."""
    engine = InProcessEngine(tools)
    await engine.submit([spec("bad"), spec("good")])
    results = {event.run: event.result async for event in engine.subscribe() if event.result}
    bad, good = results["bad"], results["good"]
    assert bad is not None
    assert (bad.verdict, bad.fault) == ("error", "infrastructure")
    assert "the disk is gone" in bad.reason
    assert good is not None
    assert good.verdict == "passed"
    assert tools.archive.store.get("bad").state == "running", "the next start finds it"
    await engine.close()


async def test_a_run_that_another_process_works_on(tools: RunTools) -> None:
    """It cannot be cancelled or followed here."""
    engine = InProcessEngine(tools)
    tools.archive.store.plan(spec("r1"))
    tools.archive.store.begin("r1", replace(this_process(), pid=1))
    with pytest.raises(UsageError, match="does not work on it"):
        await engine.cancel("r1")
    with pytest.raises(UsageError, match="does not work on it"):
        await anext(engine.subscribe(["r1"]))
    await engine.submit([spec("r1")])
    assert await engine.list() == []
    await engine.close()


async def test_a_planned_run_can_be_submitted(tools: RunTools) -> None:
    """A run that was planned and never begun is worked off when it is submitted again."""
    engine = InProcessEngine(tools)
    tools.archive.store.plan(spec("r1"))
    await engine.submit([spec("r1")])
    assert [event.run async for event in engine.subscribe() if event.result] == ["r1"]
    await engine.close()


async def test_a_follower_that_goes_away(tools: RunTools) -> None:
    """Nobody keeps the events of one who no longer listens."""
    engine = InProcessEngine(tools)
    await engine.submit([spec("r1")])
    follower = engine.subscribe()
    gone = ref(follower)
    del follower
    gc.collect()
    assert gone() is None
    await engine.close()


async def test_a_line_about_what_is_under_way(tools: RunTools) -> None:
    """What a driver says of a run reaches who follows it."""
    engine = InProcessEngine(tools)
    await engine.submit([spec("r1")])
    follower = engine.subscribe(["r1"])
    engine.tell("r1", "waiting for memory")
    engine.tell("r2", "waiting for memory")
    assert [event.step async for event in follower if event.step] == ["waiting for memory"]
    await engine.close()


async def test_who_listens_from_outside(tools: RunTools) -> None:
    """The callback of the tools hears everything as well."""
    heard: list[str] = []
    engine = InProcessEngine(replace(tools, publish=lambda event: heard.append(event.run)))
    await engine.submit([spec("r1")])
    async with asyncio.timeout(10):
        async for _ in engine.subscribe():
            pass
    assert set(heard) == {"r1"}
    await engine.close()


def test_at_least_one_at_a_time(tools: RunTools) -> None:
    """No run could ever start with less."""
    with pytest.raises(UsageError, match="not 0"):
        InProcessEngine(tools, parallel=0)


def test_new_ids_differ_and_sort_by_age() -> None:
    """Ids are safe as names of files and hosts, differ, and begin with the moment."""
    ids = [new_run_id() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert [id[:15] for id in ids] == sorted(id[:15] for id in ids)
    assert all(id.replace("-", "").isalnum() for id in ids)


async def test_a_run_with_secrets_is_kept_masked_and_not_planned_again(tools: RunTools) -> None:
    """What was kept of it is not what hosts must get; its file has it still."""
    mask = Mask([("PW", "hunter2-x9")])
    engine = InProcessEngine(replace(tools, mask=lambda _lab: mask))
    secret = Scenario.model_validate({"key": "d", "title": "D", "ticket_title": "hunter2-x9"})
    await engine.submit([spec("r1").model_copy(update={"scenario": secret})])
    results = [event.result async for event in engine.subscribe(["r1"]) if event.result]
    kept = tools.archive.store.get("r1").spec
    assert (kept.scenario.ticket_title, kept.masked) == ("[masked:PW]", ("PW",))
    assert [result.verdict for result in results] == ["passed"]
    with pytest.raises(UsageError, match=r"secrets in it are masked \(PW\)"):
        await engine.retry("r1")
    await engine.close()
