"""The built-in agent works a whole ticket on four real hosts, with scripted models."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.integration.model_server import Answer, Asked, call, finish, model_server, offline

from opsdrill.agents.adapter import Assignment
from opsdrill.agents.adapters.llm import LlmAdapter
from opsdrill.agents.llm.job import LlmJob
from opsdrill.evidence.recorder import Recorder
from opsdrill.grading.targets import collect
from opsdrill.hosts.driver import DRIVERS, Driver, DriverContext
from opsdrill.model.agent import AgentSettings, McpServer
from opsdrill.model.job import JobRecord
from opsdrill.model.result import Result
from opsdrill.model.rules import WHERES
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec, StoredFile
from opsdrill.model.ticket import Ticket
from opsdrill.patterns import BoundedSearcher
from opsdrill.runner.archive import Archive
from opsdrill.runner.inprocess import InProcessEngine
from opsdrill.runner.owner import this_process
from opsdrill.runner.tools import RunTools
from opsdrill.scenarios.catalogue import PACKS
from opsdrill.scenarios.load import load_scenario
from opsdrill.store.home import open_store
from opsdrill.store.store import Store

pytestmark = pytest.mark.sandbox

SCENARIO = PACKS / "basics" / "patch-web-hosts"
TRACKER = McpServer(
    command=(sys.executable, str(Path(__file__).parents[1] / "mcp_tracker.py")),
    environment=("TRACKER_USER",),
)
TICKET = Ticket(title="Wait", body="Please wait.")
WEB = ("web-01", "web-02", "web-03")


def planned(asked: Asked) -> Answer:
    match asked.answers:
        case 0:
            patch = "Run /opt/shop/shopctl patch 1.4.3 and note it in /root/notes."
            tasks = [{"host": host, "description": patch} for host in WEB]
            return call("next_turn", plan="Patch all, then check.", post="Starting.", tasks=tasks)
        case 1:
            check = "Run /opt/monitor/versions 1.4.3 and close ticket 7."
            tasks = [{"host": "mon-01", "description": check}]
            return call("next_turn", plan="Patched. Now check.", post="Patched.", tasks=tasks)
        case _:
            return call(
                "resolve", resolution="success", reasoning="The monitor sees 1.4.3.", post="Done."
            )


def worked(asked: Asked) -> Answer:
    monitor = "on the one host mon-01." in " ".join(asked.role.split())
    steps = [
        Answer("I look first.", (("shell", {"command": "hostname"}),)),
        call("shell", command="/opt/monitor/versions 1.4.3")
        if monitor
        else call("shell", command="/opt/shop/shopctl patch 1.4.3"),
        call("tracker_close_ticket", id=7)
        if monitor
        else Answer(
            calls=(
                ("write_file", {"path": "/root/notes", "content": "patched to 1.4.2\n"}),
                ("update_file", {"path": "/root/notes", "old": "1.4.2", "new": "1.4.3"}),
                ("read_file", {"path": "/root/notes"}),
            )
        ),
        finish("It has 1.4.3 now."),
    ]
    return steps[asked.answers]


def brain(asked: Asked) -> Answer:
    return planned(asked) if asked.plans else worked(asked)


class Offline(LlmAdapter):
    """The adapter with the library's own offline model."""

    def _job(self) -> LlmJob:
        return LlmJob("scripted", self._settings, self._folder, model=offline(brain))


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


def spec(store: Store, settings: AgentSettings) -> RunSpec:
    loaded = load_scenario(SCENARIO)
    files = tuple(
        StoredFile(source=f.source, digest=store.put_file(f.read()), size=f.size)
        for f in loaded.files.values()
    )
    return RunSpec(
        id="r-1",
        scenario=loaded.scenario,
        scenario_version=loaded.version,
        files=files,
        agent=AgentChoice(adapter="llm", argument="scripted", settings=settings),
        lab=LabChoice(name="sandbox", driver="sandbox"),
        created_at=datetime.now(UTC),
    )


async def drilled(store: Store, driver: Driver, run: RunSpec, adapter: type[LlmAdapter]) -> Result:
    archive = Archive(store)
    try:
        with BoundedSearcher() as searcher:
            tools = RunTools(
                archive, lambda _lab: driver, searcher, this_process(), lambda _name: adapter
            )
            engine = InProcessEngine(tools, parallel=1)
            await engine.submit([run])
            async with asyncio.timeout(120):
                async for event in engine.subscribe([run.id]):
                    if event.result is not None:
                        return event.result
    finally:
        archive.close()
    raise AssertionError("no result")


@pytest.mark.parametrize("how", ["offline", "over a socket"])
async def test_four_hosts_in_two_turns_with_all_evidence(
    how: str, store: Store, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`turns` passes, and every target of grading has values but `task_plan`, which never has."""
    monkeypatch.setenv("TRACKER_USER", "opsdrill")
    async with AsyncExitStack() as opened:
        settings = AgentSettings(base_url="http://localhost:1", mcp_servers={"tracker": TRACKER})
        adapter: type[LlmAdapter] = Offline
        if how == "over a socket":
            server = await opened.enter_async_context(model_server(brain))
            settings = settings.model_copy(update={"base_url": server.url})
            adapter = LlmAdapter
        result = await drilled(store, driver, spec(store, settings), adapter)
    record = store.record("r-1")
    assert record is not None
    assert result.verdict == "passed", (result.reason, record)
    assert [(task.turn, task.host) for task in record.tasks] == [
        *((1, host) for host in WEB),
        (2, "mon-01"),
    ]
    empty = [where for where in WHERES if not collect(record, where).texts]
    assert empty == ["task_plan"]
    assert record.coverage.default.state == "whole"
    assert collect(record, "use_mcp_tool").texts == ('tracker/close_ticket {"id":7}',)
    assert collect(record, "gateway_summary").texts == ("Done.",)
    [closed] = [c for t in record.tasks for c in t.tool_calls if c.kind == "mcp"]
    assert closed.output == "closed by opsdrill"
    for task in record.tasks:
        assert task.usage is not None
        assert task.usage.model == "scripted"
        assert task.usage.input_tokens
        assert [m.text for m in task.messages] == ["I look first."]
    assert record.job is not None
    assert record.job.usage is not None
    if how == "over a socket":
        assert [task.usage.input_tokens for task in record.tasks if task.usage] == [400] * 4
        assert record.job.usage.input_tokens == 300


class Told:
    def __init__(self, began: asyncio.Event) -> None:
        self._began = began

    def append(self, seq: int, event: Any) -> None:
        if event.event == "tool_called":
            self._began.set()


async def test_a_cancelled_job_leaves_no_command_running(driver: Driver, tmp_path: Path) -> None:
    def slow(asked: Asked) -> Answer:
        if asked.plans:
            tasks = [{"host": "web-01", "description": "Wait."}]
            return call("next_turn", plan="Wait.", tasks=tasks)
        return call("shell", command="exec sleep 987")

    scenario = load_scenario(SCENARIO).scenario
    began = asyncio.Event()
    async with await driver.provision("run-1", scenario.hosts[:1]) as fleet:
        recorder = Recorder(Told(began), TICKET)
        job = LlmJob("scripted", AgentSettings(), tmp_path, model=offline(slow))
        given = Assignment(TICKET, fleet.hosts, (), 60.0, 50.0)
        working = asyncio.create_task(job.work(given, recorder))
        async with asyncio.timeout(30):
            await began.wait()
            await asyncio.sleep(0.3)
            working.cancel()
            with pytest.raises(asyncio.CancelledError):
                await working
        record: JobRecord = recorder.job_record()
        assert [task.status for task in record.tasks] == ["cancelled"]
        assert [c.outcome for c in record.tasks[0].tool_calls] == ["failed"]
        assert not _running("987")


def _running(word: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().split(b"\0")[1:2] == [word.encode()]:
                return True
        except OSError:
            continue
    return False
