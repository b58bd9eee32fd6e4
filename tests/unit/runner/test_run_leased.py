"""Runs on lasting hosts: one at a time, restored before and after, stopped when a lease is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from opsdrill.agents.adapter import Adapter, AdapterContext, Assignment
from opsdrill.evidence.recorder import Recorder
from opsdrill.hosts.driver import DriverContext, Finding
from opsdrill.hosts.drivers.fake import FakeDriver
from opsdrill.hosts.drivers.fake_script import FakeAnswer, FakeScript, Scripted
from opsdrill.hosts.lease import Claim
from opsdrill.model.event import JobCreated, JobEnded, Resolved, TaskCreated, TaskStarted
from opsdrill.model.host import Command
from opsdrill.model.lab import Lab
from opsdrill.model.result import Result
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec
from opsdrill.model.scenario import HostSpec, Scenario
from opsdrill.patterns import BoundedSearcher
from opsdrill.runner.archive import Archive
from opsdrill.runner.engine import RunEvent
from opsdrill.runner.leases import LeaseKeeper
from opsdrill.runner.owner import this_process
from opsdrill.runner.run import run
from opsdrill.runner.tools import RunTools
from opsdrill.store.memory import MemoryStore
from opsdrill.store.store import Owner

SECONDS = 0.6
OTHER = Owner("elsewhere", "boot", 1, 1)


class LastingDriver(FakeDriver):
    """Fake hosts that do not vanish with the run; notes when it is asked whether it can work."""

    throw_away = False

    async def preflight(self, hosts: Sequence[HostSpec] = ()) -> list[Finding]:
        self.looked = True
        return await super().preflight(hosts)

    looked = False


class Agent:
    """Does at once what it should."""

    name = "agent"

    def __init__(self, context: AdapterContext) -> None:
        pass

    async def preflight(self, hosts: tuple[str, ...]) -> None:
        pass

    async def work(self, assignment: Assignment, recorder: Recorder) -> None:
        recorder.record(JobCreated(job="j1"))
        recorder.record(TaskCreated(task="t1", host="web-01", turn=1))
        recorder.record(TaskStarted(task="t1"))
        await self.act(assignment)
        recorder.record(Resolved(resolution="success"))
        recorder.record(JobEnded(status="completed"))

    async def act(self, assignment: Assignment) -> None:
        await assignment.hosts["web-01"].run(Command(run="mend"))


class Slow(Agent):
    async def act(self, assignment: Assignment) -> None:
        await asyncio.sleep(100)


class Drill:
    """Lasting fake hosts, a store in memory, and who listens."""

    def __init__(self, folder: Path, archive: Archive, searcher: BoundedSearcher) -> None:
        self.folder = folder
        self.archive = archive
        self.searcher = searcher
        self.heard: list[RunEvent] = []
        store = archive.store
        self.book = store.leases(this_process(), lambda _: False, seconds=SECONDS)
        self.other = store.leases(OTHER, lambda _: False, seconds=SECONDS)
        self.keeper = LeaseKeeper(self.book, seconds=SECONDS)
        self.driver = self.hosts()

    def hosts(self, *answers: FakeAnswer) -> LastingDriver:
        script = FakeScript(answers=answers, otherwise=Scripted(exit_code=0))
        self.driver = LastingDriver(DriverContext(self.folder), script)
        return self.driver

    async def run(
        self, adapter: type[Adapter] = Agent, id: str = "r1", lab: Lab | None = None, **more: object
    ) -> Result:
        scenario = Scenario.model_validate(
            {
                "key": "drill",
                "title": "A drill",
                "ticket_title": "It is broken",
                "hosts": ["web-01"],
                "validation": [{"label": "up", "validator": "host_state", "run": "up?"}],
                **more,
            }
        )
        spec = RunSpec(
            id=id,
            scenario=scenario,
            scenario_version=scenario.version(),
            agent=AgentChoice(adapter="agent"),
            lab=LabChoice(name="lab", driver="fake", lab=lab),
            created_at=datetime.now(UTC),
        )
        self.archive.store.plan(spec)
        tools = RunTools(
            self.archive,
            lambda _lab: self.driver,
            self.searcher,
            this_process(),
            adapter=lambda _name: adapter,
            publish=self.heard.append,
            leases=self.keeper,
        )
        async with asyncio.timeout(20):
            return await run(spec, tools)

    def asked(self) -> list[tuple[str, str]]:
        """The commands that the host was asked to run, and as whom."""
        ((_, fleet),) = list(self.driver._fleets.items())
        return [(command.run, command.user) for command in fleet.hosts["web-01"].asked]


@pytest.fixture
async def drill(tmp_path: Path) -> AsyncIterator[Drill]:
    archive = Archive(MemoryStore())
    with BoundedSearcher() as searcher:
        made = Drill(tmp_path, archive, searcher)
        yield made
        await made.keeper.close()
    archive.close()


def held_by_other(drill: Drill) -> int:
    turn = drill.other.take(Claim("other", 1, {"fake web-01": "web-01"}))
    assert turn.held
    return turn.number


async def test_the_lease_ends_with_the_run(drill: Drill) -> None:
    result = await drill.run()
    assert result.verdict == "passed", result
    assert drill.book.leases() == []


async def test_the_host_is_held_from_the_first_look_to_the_last_restore_step(drill: Drill) -> None:
    seen: list[list[str]] = []

    class Watched(LastingDriver):
        async def preflight(self, hosts: Sequence[HostSpec] = ()) -> list[Finding]:
            seen.append([lease.run for lease in drill.book.leases() if lease.held])
            return []

    class Watching(Agent):
        async def act(self, assignment: Assignment) -> None:
            seen.append([lease.run for lease in drill.book.leases() if lease.held])

    drill.driver = Watched(DriverContext(drill.folder), FakeScript(otherwise=Scripted(exit_code=0)))
    await drill.run(Watching)
    assert seen == [["r1"], ["r1"]]


async def test_a_run_waits_for_its_host_untouched_and_says_for_what(drill: Drill) -> None:
    """No two runs use a host at once; waiting runs say what they wait for."""
    number = held_by_other(drill)
    running = asyncio.create_task(drill.run())
    for _ in range(4):
        await asyncio.sleep(SECONDS / 3)
        drill.other.renew([number])
    assert not running.done()
    assert drill.driver.looked is False
    assert drill.driver.fleets == {}
    drill.other.release(number)
    assert (await running).verdict == "passed"
    steps = [event.step for event in drill.heard if event.step]
    assert len(steps) == 1
    assert steps[0].startswith("waiting for web-01, held by run other since ")


async def test_a_run_that_is_cancelled_while_it_waits_leaves_no_lease(drill: Drill) -> None:
    held_by_other(drill)
    running = asyncio.create_task(drill.run())
    await asyncio.sleep(0.2)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    stored = drill.archive.store.get("r1")
    assert stored.state == "cancelled"
    assert [lease.run for lease in drill.book.leases()] in ([], ["other"])


async def test_a_lost_lease_ends_the_run_by_infrastructures_fault(drill: Drill) -> None:
    """The agent is stopped; what it did is kept, and not graded; the host, which is another
    run's by now, is not restored."""
    running = asyncio.create_task(drill.run(Slow, restore=[{"run": "restore"}]))
    while not any(event.job for event in drill.heard):
        await asyncio.sleep(0.01)
    (lease,) = drill.book.leases()
    drill.book.release(lease.number)
    held_by_other(drill)
    asked_before = len(drill.asked())
    fleet = drill.driver.fleets["r1"].hosts["web-01"]
    result = await running
    assert (result.state, result.verdict, result.fault) == ("done", "error", "infrastructure")
    assert "its lease of the host was lost" in result.reason
    assert result.after_agent
    assert drill.archive.store.record("r1") is not None
    assert len(fleet.asked) == asked_before
    assert [lease.run for lease in drill.other.leases()] == ["other"]


async def test_a_lease_lost_when_all_was_graded_keeps_the_grade(drill: Drill) -> None:
    """The evidence was sealed while the host was the run's own, so its grade stands."""
    drill.hosts(FakeAnswer(run="restore", delay=30, times=1, exit_code=0, after="mend"))
    running = asyncio.create_task(drill.run(restore=[{"run": "restore"}, {"run": "restore more"}]))
    while not any(event.phase and event.phase.name == "restore" for event in drill.heard):
        await asyncio.sleep(0.01)
    (lease,) = drill.book.leases()
    drill.book.release(lease.number)
    fleet = drill.driver.fleets["r1"].hosts["web-01"]
    result = await running
    assert (result.verdict, result.fault) == ("passed", None)
    assert any("its lease of the host was lost" in warning for warning in result.warnings)
    assert fleet.asked[-1].run == "restore"
    assert [grade.cause for grade in drill.archive.store.grades("r1")] == ["run"]


async def test_throw_away_hosts_take_no_lease(drill: Drill) -> None:
    held_by_other(drill)
    drill.driver = FakeDriver(  # type: ignore[assignment]
        DriverContext(drill.folder), FakeScript(otherwise=Scripted(exit_code=0))
    )
    assert (await drill.run()).verdict == "passed"


async def test_runs_of_one_host_come_one_after_the_other(drill: Drill) -> None:
    """Ten runs at once on one host: at no moment two of them work on it."""
    working: list[int] = []
    most: list[int] = []

    class Counting(Agent):
        async def act(self, assignment: Assignment) -> None:
            working.append(1)
            most.append(len(working))
            await asyncio.sleep(0.01)
            working.pop()

    results = await asyncio.gather(*(drill.run(Counting, f"r{n}") for n in range(10)))
    assert [result.verdict for result in results] == ["passed"] * 10
    assert most == [1] * 10
    assert drill.book.leases() == []


async def test_steps_run_as_the_labs_user_unless_they_say_otherwise(drill: Drill) -> None:
    """Commands run as root where neither the lab nor the step names a user."""
    lab = Lab.model_validate({"driver": "fake", "defaults": {"user": "deploy"}})
    seen: list[tuple[str, str]] = []

    class Looking(Agent):
        async def act(self, assignment: Assignment) -> None:
            seen.extend(drill.asked())

    await drill.run(
        Looking,
        lab=lab,
        setup=[{"run": "break"}, {"run": "break more", "user": "root"}],
        ready=[{"run": "broken?"}],
        restore=[{"run": "back"}],
        requires=["curl"],
    )
    users = dict(seen)
    assert users["break"] == users["broken?"] == users["back"] == "deploy"
    assert users["break more"] == "root"
    assert {user for text, user in seen if "command -v" in text} == {"deploy"}
    (answer,) = drill.archive.store.answers("r1")
    assert (answer.run, answer.user) == ("up?", "deploy")


async def test_an_agent_is_told_who_works_on_a_host(drill: Drill) -> None:
    told: list[dict[str, str]] = []

    class Asking(Agent):
        async def act(self, assignment: Assignment) -> None:
            told.append(dict(assignment.users))

    lab = Lab.model_validate({"driver": "fake", "hosts": {"web-01": {"user": "deploy"}}})
    await drill.run(Asking, lab=lab)
    await drill.run(Asking, id="r2")
    assert told == [{"web-01": "deploy"}, {}]
