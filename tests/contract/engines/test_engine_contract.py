"""What every engine must do, whichever works off the runs."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from opsdrill.errors import UsageError
from opsdrill.hosts.driver import DriverContext, Finding
from opsdrill.hosts.drivers.fake import FakeDriver, FakeFleet
from opsdrill.hosts.drivers.fake_script import FakeAnswer, FakeScript, Scripted
from opsdrill.model.result import PHASES, PhaseName, Result
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec
from opsdrill.model.scenario import HostSpec, Scenario
from opsdrill.patterns import BoundedSearcher
from opsdrill.runner.archive import Archive
from opsdrill.runner.engine import Engine, RunEvent
from opsdrill.runner.inprocess import InProcessEngine
from opsdrill.runner.owner import this_process
from opsdrill.runner.tools import RunTools
from opsdrill.store.home import open_store
from opsdrill.store.store import Store

SLOW = 30.0
"""Seconds that a step takes which a test stops."""


class WatchedDriver(FakeDriver):
    """Fake hosts that last, so that they are restored, and that are counted."""

    throw_away = False

    def __init__(self, context: DriverContext, script: FakeScript | None = None) -> None:
        super().__init__(context, script)
        self.slow_preflight = 0.0
        self.script_of: dict[str, FakeScript] = {}
        self.most_at_once = 0
        self.order: list[str] = []

    async def preflight(self, hosts: Sequence[HostSpec] = ()) -> list[Finding]:
        await asyncio.sleep(self.slow_preflight)
        return await super().preflight(hosts)

    async def provision(self, run: str, hosts: Sequence[HostSpec]) -> FakeFleet:
        if run in self.script_of:
            self._script = self.script_of[run]
        fleet = await super().provision(run, hosts)
        self.order.append(run)
        self.most_at_once = max(self.most_at_once, len(self.fleets))
        return fleet


@dataclass
class World:
    """An engine and what stands around it."""

    engine: Engine
    store: Store
    driver: WatchedDriver
    folder: Path
    heard: list[RunEvent] = field(default_factory=list)

    def spec(
        self, id: str, *, script: str = "turns: []\n", setup: str = "break", **more: object
    ) -> RunSpec:
        """A run on one fake host whose agent plays `script`."""
        name = f"agent-{id}.yaml"
        (self.folder / name).write_text(f"format: opsdrill.script/1\n{script}")
        scenario = Scenario.model_validate(
            {
                "key": "drill",
                "title": "A drill",
                "ticket_title": "It is broken",
                "hosts": ["web-01"],
                "setup": [{"run": setup}],
                "ready": [{"run": "broken?"}],
                "restore": [{"run": "clear"}],
                "validation": [{"label": "mended", "validator": "host_state", "run": "mended?"}],
                **more,
            }
        )
        return RunSpec(
            id=id,
            scenario=scenario,
            scenario_version=scenario.version(),
            agent=AgentChoice(adapter="script", argument=name, folder=str(self.folder)),
            lab=LabChoice(name="fake", driver="fake"),
            created_at=datetime.now(UTC),
        )

    async def result(self, run: str) -> Result:
        """The result of a run, once it is over."""
        async with asyncio.timeout(20):
            async for event in self.engine.subscribe([run]):
                if event.result is not None:
                    return event.result
        raise AssertionError(f"no result of {run}")

    async def until(self, run: str, phase: PhaseName) -> None:
        """Wait until a phase of a run has begun."""
        async with asyncio.timeout(20):
            while not any(known.name == phase for known in self.store.get(run).phases):
                await asyncio.sleep(0.01)


SUCCESS = "resolve: {resolution: success, reasoning: done}\nturns: []\n"
"""An agent that resolves its job at once."""


def fake_script(**slow: float) -> FakeScript:
    """Every command ends with 0; those named take so many seconds."""
    answers = tuple(FakeAnswer(run=run, exit_code=0, delay=delay) for run, delay in slow.items())
    return FakeScript(answers=answers, otherwise=Scripted(exit_code=0))


@pytest.fixture(params=["in-process"])
async def world(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[Callable[..., World]]:
    """Makes an engine of each kind: `world(parallel=2, slow={"break": 30})`."""
    async with AsyncExitStack() as stack:

        def make(parallel: int = 1, slow: dict[str, float] | None = None) -> World:
            store = open_store(tmp_path / "home")
            stack.callback(store.close)
            archive = Archive(store)
            stack.callback(archive.close)
            searcher = stack.enter_context(BoundedSearcher())
            driver = WatchedDriver(DriverContext(tmp_path), fake_script(**(slow or {})))
            heard: list[RunEvent] = []
            tools = RunTools(
                archive, lambda _lab: driver, searcher, this_process(), publish=heard.append
            )
            engine = {"in-process": InProcessEngine}[request.param](tools, parallel=parallel)
            stack.push_async_callback(engine.close)
            return World(engine, store, driver, tmp_path, heard)

        yield make


MakeWorld = Callable[..., World]


async def test_run_comes_to_its_verdict(world: MakeWorld) -> None:
    """A run goes through all phases in order and is graded."""
    w = world()
    await w.engine.submit([w.spec("r1", script=SUCCESS)])
    result = await w.result("r1")
    assert (result.state, result.verdict, result.fault) == ("done", "passed", None), result
    assert tuple(phase.name for phase in result.phases) == PHASES
    assert all(phase.status == "done" and phase.ended_at for phase in result.phases)


async def test_result_told_is_the_result_kept(world: MakeWorld) -> None:
    """Who hears of a result finds the same one in the store."""
    w = world()
    await w.engine.submit([w.spec("r1", script=SUCCESS), w.spec("r2")])
    events = w.engine.subscribe(["r1", "r2"])
    told = {event.run: event.result async for event in events if event.result is not None}
    assert set(told) == {"r1", "r2"}
    for run, result in told.items():
        assert w.store.get(run).result == result
        assert w.store.get(run).state == "done"
        grades = w.store.grades(run)
        assert [grade.grade.verdict for grade in grades] == [result.verdict if result else None]


async def test_submitting_again_changes_nothing(world: MakeWorld) -> None:
    """Submitting an id again is no error, before and after the run."""
    w = world(slow={"break": 0.1})
    spec = w.spec("r1", script=SUCCESS)
    await w.engine.submit([spec, spec])
    await w.engine.submit([spec])
    first = await w.result("r1")
    await w.engine.submit([spec])
    assert await w.engine.list() == []
    assert await w.result("r1") == first
    assert w.driver.order == ["r1"]


async def test_a_submit_that_is_cut_off_loses_no_run(world: MakeWorld) -> None:
    """Whoever submits may go away at any moment: each run that is planned is worked off."""
    for wait in (0, 3, 20):
        w = world(parallel=4)
        names = [f"w{wait}-{n}" for n in range(110)]
        submitting = asyncio.create_task(w.engine.submit([w.spec(name) for name in names]))
        for _ in range(wait):
            await asyncio.sleep(0.002)
        submitting.cancel()
        await asyncio.gather(submitting, return_exceptions=True)
        planned = {run for run, _ in w.store.planned()} | {run for run, _ in w.store.running()}
        async with asyncio.timeout(60):
            async for _ in w.engine.subscribe():
                pass
        assert {w.store.get(run).state for run in planned} <= {"done"}
        assert w.store.planned() == []
        await w.engine.close()


async def test_runs_that_cannot_be_kept_do_not_begin(world: MakeWorld) -> None:
    """A run that the store refuses is told, and takes no other with it half-way."""
    w = world()
    with pytest.raises(UsageError, match="at most 200 characters"):
        await w.engine.submit([w.spec("r1"), w.spec("r2").model_copy(update={"id": "x" * 201})])
    assert (await w.engine.list(), w.store.planned(), w.driver.order) == ([], [], [])
    await w.engine.submit([w.spec("r1")])
    assert (await w.result("r1")).state == "done"


async def test_runs_start_in_the_order_submitted(world: MakeWorld) -> None:
    """Runs start in the order submitted, over several calls."""
    w = world()
    await w.engine.submit([w.spec(f"r{n}") for n in range(4)])
    await w.engine.submit([w.spec("r4")])
    for n in range(5):
        await w.result(f"r{n}")
    assert w.driver.order == [f"r{n}" for n in range(5)]


async def test_never_more_at_once_than_allowed(world: MakeWorld) -> None:
    """As many runs at once as allowed, and never one more."""
    w = world(parallel=3, slow={"break": 0.05})
    await w.engine.submit([w.spec(f"r{n}") for n in range(9)])
    async for _ in w.engine.subscribe():
        states = [state for _, state in await w.engine.list()]
        assert states.count("running") <= 3
    assert w.driver.most_at_once == 3
    assert len(w.driver.order) == 9


async def test_list_shows_what_is_not_over(world: MakeWorld) -> None:
    """`list` names the runs that are not over, in the order submitted, with their states."""
    w = world(slow={"break": SLOW})
    await w.engine.submit([w.spec("r1"), w.spec("r2")])
    await w.until("r1", "setup")
    assert await w.engine.list() == [("r1", "running"), ("r2", "planned")]
    assert w.store.get("r2").state == "planned"


SLOW_IN: dict[PhaseName, dict[str, float]] = {
    "preflight": {},
    "setup": {"break": SLOW},
    "ready": {"broken?": SLOW},
    "execute": {"work": SLOW},
    "validate": {"mended?": SLOW},
}
WORKING = "turns: [{tasks: [{host: web-01, do: [{run: work}]}]}]\n"


@pytest.mark.parametrize("phase", SLOW_IN)
async def test_cancelled_in_any_phase_gives_hosts_back(world: MakeWorld, phase: PhaseName) -> None:
    """Cancelled, a run ends as `cancelled` without a verdict; its hosts are given back."""
    w = world(slow=SLOW_IN[phase])
    w.driver.slow_preflight = SLOW if phase == "preflight" else 0.0
    await w.engine.submit([w.spec("r1", script=WORKING)])
    await w.until("r1", phase)
    async with asyncio.timeout(10):
        assert await w.engine.cancel("r1") is True
    stored = w.store.get("r1")
    assert stored.state == "cancelled"
    result = await w.result("r1")
    assert result == stored.result
    assert (result.state, result.verdict, result.fault) == ("cancelled", None, "operator")
    assert phase in result.reason
    stopped = {known.name: known.status for known in stored.phases}
    assert stopped[phase] == "interrupted"
    assert stopped.get("restore") == (None if phase == "preflight" else "done")
    assert stopped == {known.name: known.status for known in result.phases}
    assert w.driver.fleets == {}
    assert w.store.grades("r1") == []


async def test_cancelled_in_restore_gives_hosts_back(world: MakeWorld) -> None:
    """Cancelled while hosts are restored, they are given back all the same."""
    w = world(slow={"mended?": 0.1})
    # The clearing before setup is quick, the one after the job is not.
    slow_later = FakeScript(
        answers=(
            FakeAnswer(run="clear", exit_code=0, times=1),
            FakeAnswer(run="clear", exit_code=0, delay=SLOW),
        ),
        otherwise=Scripted(exit_code=0),
    )
    w.driver.script_of["r1"] = slow_later
    await w.engine.submit([w.spec("r1")])
    await w.until("r1", "restore")
    async with asyncio.timeout(10):
        assert await w.engine.cancel("r1") is True
    stored = w.store.get("r1")
    assert (stored.state, stored.phases[-1].name) == ("cancelled", "restore")
    assert stored.phases[-1].status == "interrupted"
    assert w.driver.fleets == {}


async def test_cancelling_twice_does_not_break_off_the_giving_back(world: MakeWorld) -> None:
    """Cancelled again, and closed, while its hosts are restored: they are restored to the end."""
    w = world(slow={"break": SLOW})
    clear_slowly = FakeScript(
        answers=(
            FakeAnswer(run="clear", exit_code=0, times=1),
            FakeAnswer(run="clear", exit_code=0, delay=0.3),
            FakeAnswer(run="break", exit_code=0, delay=SLOW),
        ),
        otherwise=Scripted(exit_code=0),
    )
    w.driver.script_of["r1"] = clear_slowly
    await w.engine.submit([w.spec("r1")])
    await w.until("r1", "setup")
    first = asyncio.create_task(w.engine.cancel("r1"))
    await w.until("r1", "restore")
    async with asyncio.timeout(10):
        await asyncio.gather(first, w.engine.cancel("r1"), w.engine.close())
    stored = w.store.get("r1")
    assert stored.state == "cancelled"
    assert (stored.phases[-1].name, stored.phases[-1].status) == ("restore", "done")
    assert w.driver.fleets == {}


@pytest.mark.parametrize("seed", range(5))
async def test_cancelled_at_any_moment(world: MakeWorld, seed: int) -> None:
    """Whenever runs are cancelled, each has one end that fits its state, and no host stays."""
    chance = random.Random(seed)
    w = world(parallel=4, slow={"break": 0.005, "mended?": 0.005})
    runs = [f"r{n}" for n in range(20)]
    for run in runs:
        await w.engine.submit([w.spec(run, script=SUCCESS)])
    follower = w.engine.subscribe(runs)

    async def cancel(run: str) -> bool:
        await asyncio.sleep(chance.uniform(0, 0.2))
        return await w.engine.cancel(run)

    async with asyncio.timeout(30):
        cancelled = await asyncio.gather(*(cancel(run) for run in runs))
        ends = [(event.run, event.result) async for event in follower if event.result]
    assert sorted(run for run, _ in ends) == sorted(runs)
    assert w.driver.fleets == {}
    results = dict(ends)
    for run, was_cancelled in zip(runs, cancelled, strict=True):
        stored = w.store.get(run)
        assert stored.state == ("cancelled" if was_cancelled else "done")
        assert stored.result == results[run]
        assert len(w.store.grades(run)) == (stored.state == "done")
        assert all(phase.status != "running" for phase in stored.phases)


async def test_cancelling_before_it_began(world: MakeWorld) -> None:
    """A run that waits for its turn is cancelled without ever starting."""
    w = world(slow={"break": SLOW})
    await w.engine.submit([w.spec("r1"), w.spec("r2"), w.spec("r3", setup="quick")])
    assert await w.engine.cancel("r2") is True
    result = await w.result("r2")
    assert (result.state, result.verdict, result.phases) == ("cancelled", None, ())
    await w.engine.cancel("r1")
    assert (await w.result("r3")).state == "done"
    assert w.driver.order == ["r1", "r3"]


async def test_a_cancel_that_is_cut_off_is_done_all_the_same(world: MakeWorld) -> None:
    """Whoever cancels may go away: the run is cancelled, and all who follow it are told."""
    w = world(slow={"break": SLOW})
    await w.engine.submit([w.spec("r1"), w.spec("r2")])
    await w.until("r1", "setup")
    cancelling = asyncio.create_task(w.engine.cancel("r2"))
    await asyncio.sleep(0)
    cancelling.cancel()
    await asyncio.gather(cancelling, return_exceptions=True)
    assert (await w.result("r2")).state == "cancelled"
    assert [run for run, _ in await w.engine.list()] == ["r1"]
    assert [event.run for event in w.heard if event.result is not None] == ["r2"]
    await w.engine.cancel("r1")


async def test_cancelling_right_after_submitting(world: MakeWorld) -> None:
    """A run that was only just started is cancelled like any other."""
    w = world(slow={"break": SLOW})
    await w.engine.submit([w.spec("r1")])
    assert await w.engine.cancel("r1") is True
    assert (await w.result("r1")).state == "cancelled"
    assert w.driver.fleets == {}


async def test_cancelling_what_is_over(world: MakeWorld) -> None:
    """Cancelling a run that is over says so and changes nothing."""
    w = world()
    await w.engine.submit([w.spec("r1")])
    before = await w.result("r1")
    assert await w.engine.cancel("r1") is False
    assert await w.result("r1") == before


async def test_cancelling_what_is_not_there(world: MakeWorld) -> None:
    """A run that nobody planned cannot be cancelled."""
    with pytest.raises(UsageError, match="no run 'nothing'"):
        await world().engine.cancel("nothing")


async def test_cancelled_evidence_stays(world: MakeWorld) -> None:
    """What was recorded until a run was cancelled stays readable."""
    w = world(slow={"work": SLOW})
    script = "turns: [{tasks: [{host: web-01, do: [{run: look}, {run: work}]}]}]\n"
    await w.engine.submit([w.spec("r1", script=script)])
    async for event in w.engine.subscribe(["r1"]):
        if event.job is not None and event.job.event == "tool_returned":
            break
    await w.engine.cancel("r1")
    record = w.store.record("r1")
    assert record is not None
    assert record.job is not None
    assert record.job.status == "cancelled"
    assert [call.command for call in record.tasks[0].tool_calls] == ["look", "work"]


async def test_retry_is_a_new_run(world: MakeWorld) -> None:
    """A retry is the same run anew, under a new id; the first one stays."""
    w = world()
    spec = w.spec("r1", script=SUCCESS)
    await w.engine.submit([spec])
    first = await w.result("r1")
    again = await w.engine.retry("r1")
    assert again != "r1"
    assert (await w.result(again)).verdict == "passed"
    assert w.store.get(again).spec.scenario == spec.scenario
    assert w.store.get(again).spec.labels == {"retry_of": "r1"}
    assert w.store.get("r1").result == first


async def test_retry_needs_an_end(world: MakeWorld) -> None:
    """A run that is not over, or not there, cannot be retried."""
    w = world(slow={"break": SLOW})
    await w.engine.submit([w.spec("r1")])
    with pytest.raises(UsageError, match="r1 is not over"):
        await w.engine.retry("r1")
    with pytest.raises(UsageError, match="no run 'r2'"):
        await w.engine.retry("r2")


async def test_followers_hear_phases_then_events_then_the_result(world: MakeWorld) -> None:
    """Events come in order, and the result is the last of them."""
    w = world()
    await w.engine.submit([w.spec("r1", script=SUCCESS)])
    events = [event async for event in w.engine.subscribe(["r1"])]
    assert all(
        sum(part is not None for part in (e.phase, e.job, e.step, e.result)) == 1 for e in events
    )
    assert events[-1].result is not None
    assert [event.result for event in events[:-1]] == [None] * (len(events) - 1)
    names = [event.phase.name for event in events if event.phase]
    assert list(dict.fromkeys(names)) == list(PHASES)
    assert [event.job.event for event in events if event.job] == [
        "job_created", "resolved", "job_ended",
    ]  # fmt: skip


async def test_follower_of_what_is_over_gets_the_result_at_once(world: MakeWorld) -> None:
    """A run that is over gives its result and nothing else."""
    w = world()
    await w.engine.submit([w.spec("r1"), w.spec("r2")])
    result = await w.result("r2")
    first = w.store.get("r1").result
    events = [event async for event in w.engine.subscribe(["r1", "r2"])]
    assert events == [RunEvent("r1", result=first), RunEvent("r2", result=result)]


async def test_followers_hear_of_their_runs_only(world: MakeWorld) -> None:
    """A follower of one run hears nothing of another."""
    w = world(parallel=2)
    await w.engine.submit([w.spec("r1"), w.spec("r2")])
    assert {event.run async for event in w.engine.subscribe(["r2"])} == {"r2"}


async def test_follower_of_all_ends_when_all_are_over(world: MakeWorld) -> None:
    """Without names all runs are followed, to the last end."""
    w = world(parallel=2)
    await w.engine.submit([w.spec(f"r{n}") for n in range(5)])
    over = [event.run async for event in w.engine.subscribe() if event.result]
    assert sorted(over) == [f"r{n}" for n in range(5)]
    assert [event async for event in w.engine.subscribe()] == []


async def test_following_what_is_not_there(world: MakeWorld) -> None:
    """A run that nobody planned cannot be followed."""
    with pytest.raises(UsageError, match="no run 'nothing'"):
        await anext(aiter(world().engine.subscribe(["nothing"])))


async def test_idle_follower_still_gets_the_result(world: MakeWorld) -> None:
    """Who reads nothing while an agent talks loses its talk, never a phase or the result."""
    w = world()
    talk = ", ".join(["{say: hello}"] * 3000)
    script = f"turns: [{{tasks: [{{host: web-01, do: [{talk}]}}]}}]\n"
    await w.engine.submit([w.spec("r1", script=script)])
    idle = w.engine.subscribe(["r1"])
    await w.result("r1")
    events = [event async for event in idle]
    assert len(events) < 2000
    assert events[-1].result is not None
    assert {event.phase.name for event in events if event.phase} == set(PHASES)
    kept = list(w.store.events("r1"))
    assert [seq for seq, _ in kept] == list(range(len(kept)))
    assert sum(event.event == "said" for _, event in kept) == 3000


async def test_failing_run_does_not_disturb_others(world: MakeWorld) -> None:
    """A run that ends in `error` leaves those beside and after it alone."""
    w = world(parallel=2)
    bad = w.spec("bad", setup="break")
    bad = bad.model_copy(update={"agent": bad.agent.model_copy(update={"adapter": "nobody"})})
    await w.engine.submit([w.spec("r1", script=SUCCESS), bad, w.spec("r2", script=SUCCESS)])
    result = await w.result("bad")
    assert (result.verdict, result.fault) == ("error", "operator")
    assert "nobody" in result.reason
    assert [(await w.result(run)).verdict for run in ("r1", "r2")] == ["passed", "passed"]


async def test_close_gives_hosts_back(world: MakeWorld) -> None:
    """Closing stops starting, cancels what runs, and waits until hosts are given back."""
    w = world(parallel=2, slow={"break": SLOW})
    await w.engine.submit([w.spec(f"r{n}") for n in range(4)])
    await w.until("r0", "setup")
    await w.until("r1", "setup")
    async with asyncio.timeout(10):
        await w.engine.close()
    assert [w.store.get(f"r{n}").state for n in range(4)] == ["cancelled"] * 4
    assert w.driver.fleets == {}
    assert w.driver.order == ["r0", "r1"]
    with pytest.raises(UsageError, match="closed"):
        await w.engine.submit([w.spec("r9")])


async def test_close_keeps_what_is_done(world: MakeWorld) -> None:
    """Closing keeps the results of runs that are over, and ends every follower."""
    w = world(slow={"slow": SLOW})
    await w.engine.submit([w.spec("r1", script=SUCCESS), w.spec("r2", setup="slow")])
    follower = w.engine.subscribe()
    await w.result("r1")
    await w.engine.close()
    async with asyncio.timeout(10):
        over = {event.run: event.result async for event in follower if event.result}
    assert {run: result.state for run, result in over.items() if result} == {
        "r1": "done",
        "r2": "cancelled",
    }
    await w.engine.close()


async def test_close_at_once_does_not_wait_for_hosts(world: MakeWorld) -> None:
    """Closing at once breaks off the giving back; no verdict comes of it."""
    w = world(slow={"break": SLOW, "clear": SLOW})
    await w.engine.submit([w.spec("r1"), w.spec("r2")])
    await w.until("r1", "provision")
    closing = asyncio.create_task(w.engine.close())
    await asyncio.sleep(0.1)
    assert not closing.done(), "restore takes its time"
    async with asyncio.timeout(10):
        await w.engine.close(at_once=True)
        await closing
    stored = w.store.get("r1")
    assert await w.engine.list() == []
    assert stored.state in ("running", "cancelled")
    assert stored.result is None or stored.result.verdict is None
