"""Runs of dead processes: found, marked, still readable. Those of others: left alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from opsdrill.hosts.driver import DriverContext
from opsdrill.hosts.drivers.fake import FakeDriver
from opsdrill.model.event import (
    JobCreated,
    JobEvent,
    Said,
    TaskCreated,
    TaskStarted,
    ToolCalled,
    ToolReturned,
)
from opsdrill.model.result import Phase
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec
from opsdrill.model.scenario import Scenario
from opsdrill.runner.archive import Archive
from opsdrill.runner.owner import this_process
from opsdrill.runner.reap import reap
from opsdrill.store.memory import MemoryStore
from opsdrill.store.store import Owner

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
DEAD = replace(this_process(), started=1)

EVENTS: list[JobEvent] = [
    JobCreated(job="j1", at=NOW),
    TaskCreated(task="t1", host="web-01", at=NOW),
    TaskStarted(task="t1", at=NOW),
    ToolCalled(task="t1", call="c1", kind="shell", arguments={"command": "look"}, at=NOW),
    ToolReturned(task="t1", call="c1", outcome="ran", exit_code=0, at=NOW),
]


@pytest.fixture
def archive() -> Iterator[Archive]:
    made = Archive(MemoryStore())
    yield made
    made.close()


def begun(archive: Archive, id: str, owner: Owner, events: list[JobEvent]) -> None:
    """A run that an owner works on, with events recorded so far."""
    scenario = Scenario.model_validate(
        {"key": "d", "title": "D", "ticket_title": "T", "hosts": ["web-01"]}
    )
    store = archive.store
    store.plan(
        RunSpec(
            id=id,
            scenario=scenario,
            scenario_version="1",
            agent=AgentChoice(adapter="noop"),
            lab=LabChoice(name="fake", driver="fake"),
            created_at=NOW,
        )
    )
    store.begin(id, owner)
    store.phase(id, 1, Phase(name="execute", status="running", started_at=NOW))
    store.append_events(id, 1, list(enumerate(events)))


async def test_a_lost_run_is_interrupted(archive: Archive) -> None:
    """The run of a dead process is interrupted, without a verdict, and the user is told."""
    begun(archive, "r1", DEAD, EVENTS)
    (line,) = await reap(archive, [])
    assert "r1" in line
    stored = archive.store.get("r1")
    assert stored.state == "interrupted"
    assert stored.result is not None
    assert (stored.result.verdict, stored.result.fault) == (None, None)
    assert [phase.status for phase in stored.phases] == ["interrupted"]
    assert await reap(archive, []) == []


async def test_evidence_of_a_lost_run_stays_readable(archive: Archive) -> None:
    """Its job record tells what was stored, and that nothing in it is known to be whole."""
    begun(archive, "r1", DEAD, EVENTS)
    await reap(archive, [])
    record = archive.store.record("r1")
    assert record is not None
    assert [call.command for call in record.tasks[0].tool_calls] == ["look"]
    assert record.coverage.of("executed_commands").state == "partial"
    assert archive.store.grades("r1") == []


async def test_a_record_that_was_sealed_stays(archive: Archive) -> None:
    """A run killed while it was graded keeps the record that it sealed."""
    begun(archive, "r1", DEAD, EVENTS)
    await reap(archive, [])
    sealed = archive.store.record("r1")
    begun(archive, "r2", DEAD, EVENTS[:1])
    assert sealed is not None
    archive.store.save_record("r2", 1, sealed)
    await reap(archive, [])
    assert archive.store.record("r2") == sealed


async def test_events_that_make_no_record(archive: Archive) -> None:
    """A run whose stored events make no record is interrupted all the same."""
    begun(archive, "r1", DEAD, [Said(task="nobody", text="hello", at=NOW)])
    assert len(await reap(archive, [])) == 1
    assert archive.store.get("r1").state == "interrupted"
    assert archive.store.record("r1") is None


async def test_living_and_distant_runs_are_left_alone(archive: Archive) -> None:
    """A run whose process lives, or cannot be seen from here, is not touched."""
    begun(archive, "r1", this_process(), EVENTS)
    begun(archive, "r2", replace(DEAD, machine="elsewhere"), EVENTS)
    assert await reap(archive, []) == []
    assert [archive.store.get(run).state for run in ("r1", "r2")] == ["running", "running"]


async def test_drivers_reap_as_well(archive: Archive, tmp_path: Path) -> None:
    """What a driver removes is told too."""

    class Untidy(FakeDriver):
        async def reap(self) -> list[str]:
            return ["removed the host web-01 of run r0"]

    assert await reap(archive, [Untidy(DriverContext(tmp_path))]) == [
        "removed the host web-01 of run r0"
    ]
