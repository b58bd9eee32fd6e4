"""Whole runs of command agents on sandbox hosts, and what is kept of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from opsdrill.agents.adapters.command import CommandAdapter
from opsdrill.evidence.mask import Mask
from opsdrill.hosts.driver import DRIVERS, Driver, DriverContext
from opsdrill.model.agent import AgentSettings
from opsdrill.model.job import JobRecord, ToolCall
from opsdrill.model.result import Result
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec
from opsdrill.model.scenario import Scenario
from opsdrill.patterns import BoundedSearcher
from opsdrill.runner.archive import Archive
from opsdrill.runner.inprocess import InProcessEngine
from opsdrill.runner.owner import this_process
from opsdrill.runner.tools import RunTools
from opsdrill.store.home import open_store
from opsdrill.store.store import Store

CHECK = {"label": "mended", "validator": "host_state", "run": "grep -qx good /etc/app.conf"}


def drill(command: str, settings: AgentSettings | None = None, **scenario: object) -> RunSpec:
    """A run of a program on hosts of which the first has a bad configuration."""
    made = Scenario.model_validate(
        {
            "key": "app",
            "title": "A bad configuration",
            "ticket_title": "The application does not start",
            "ticket_body": "It says that its configuration is bad.",
            "hosts": ["app-01"],
            "setup": [{"run": "echo bad >/etc/app.conf"}],
            "validation": [CHECK],
            **scenario,
        }
    )
    return RunSpec(
        id=f"r-{uuid4().hex[:8]}",
        scenario=made,
        scenario_version=made.version(),
        agent=AgentChoice(adapter="command", argument=command, folder="/", settings=settings),
        lab=LabChoice(name="sandbox", driver="sandbox"),
        created_at=datetime.now(UTC),
    )


@dataclass
class Drilled:
    """What came of a run."""

    result: Result
    record: JobRecord
    kept: Path

    @property
    def calls(self) -> list[ToolCall]:
        return [call for task in self.record.tasks for call in task.tool_calls]

    @property
    def out(self) -> str:
        return (self.kept / "stdout.txt").read_text()

    @property
    def err(self) -> str:
        return (self.kept / "stderr.txt").read_text()


@dataclass
class Range:
    """Where runs are worked off."""

    home: Path
    driver: Driver
    store: Store
    engine: InProcessEngine

    async def drill(self, *runs: RunSpec) -> list[Drilled]:
        await self.engine.submit(runs)
        results: dict[str, Result] = {}
        async with asyncio.timeout(120):
            async for event in self.engine.subscribe([run.id for run in runs]):
                if event.result is not None:
                    results[event.run] = event.result
        found = []
        for run in runs:
            record = self.store.record(run.id)
            assert record is not None, results[run.id]
            found.append(Drilled(results[run.id], record, self.home / "agents" / run.id))
        return found


@contextmanager
def _store(home: Path) -> Iterator[Store]:
    store = open_store(home)
    try:
        yield store
    finally:
        store.close()


@asynccontextmanager
async def opened_range(home: Path, mask: Mask | None = None) -> AsyncIterator[Range]:
    """A data folder with an engine on it; skips where there are no sandbox hosts."""
    driver = DRIVERS.get("sandbox")(DriverContext(home / "drivers"))
    try:
        blocked = [f for f in await driver.preflight() if f.blocks and not f.good]
        if blocked:
            pytest.skip(f"no sandbox hosts here: {blocked[0].detail}; {blocked[0].remedy}")
        with _store(home) as store, BoundedSearcher() as searcher:
            archive = Archive(store)
            tools = RunTools(
                archive,
                lambda _lab: driver,
                searcher,
                this_process(),
                lambda _name: CommandAdapter,
                mask=lambda _lab: mask or Mask(),
                home=home,
            )
            try:
                yield Range(home, driver, store, InProcessEngine(tools, parallel=4))
            finally:
                archive.close()
    finally:
        await driver.close()
