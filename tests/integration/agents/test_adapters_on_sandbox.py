"""The adapters at work on real hosts: what overlaps, what is edited, what is killed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from opsdrill.agents.adapter import Adapter, AdapterContext, Assignment
from opsdrill.agents.adapters.reference import ReferenceAdapter
from opsdrill.agents.adapters.script import ScriptAdapter
from opsdrill.evidence.recorder import Recorder
from opsdrill.hosts.driver import DRIVERS, DriverContext, Fleet
from opsdrill.model.event import JobEvent, ToolCalled
from opsdrill.model.host import Command
from opsdrill.model.job import JobRecord
from opsdrill.model.scenario import HostSpec, Step
from opsdrill.model.ticket import Ticket

pytestmark = pytest.mark.sandbox

TICKET = Ticket(title="T", body="B")
HOSTS = ("web-01", "db-01")


class Told:
    """Wakes who waits when a command begins."""

    def __init__(self) -> None:
        self.began = asyncio.Event()

    def append(self, seq: int, event: JobEvent) -> None:
        if isinstance(event, ToolCalled):
            self.began.set()


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    driver = DRIVERS.get("sandbox")(DriverContext(tmp_path / "state", folder=tmp_path))
    try:
        async with await driver.provision("run-1", [HostSpec(name=name) for name in HOSTS]) as made:
            yield made
    finally:
        await driver.close()


def script(folder: Path, text: str) -> ScriptAdapter:
    (folder / "agent.yaml").write_text(f"format: opsdrill.script/1\n{text}")
    return ScriptAdapter(AdapterContext(argument="agent.yaml", folder=folder))


async def worked(adapter: Adapter, fleet: Fleet) -> JobRecord:
    recorder = Recorder(Told(), TICKET)
    await adapter.preflight(HOSTS)
    await adapter.work(Assignment(TICKET, fleet.hosts, (), 60.0, 20.0), recorder)
    return recorder.job_record()


async def answered(fleet: Fleet, run: str, host: str = "web-01") -> str:
    answer = await fleet.hosts[host].run(Command(run=run))
    assert answer.exit_code == 0, answer
    return answer.stdout.strip()


async def test_tasks_of_a_turn_meet_on_a_host(tmp_path: Path, fleet: Fleet) -> None:
    """[P3] Each waits for what the other does: one after the other they would never end."""
    meet = "touch /tmp/{0}; until test -e /tmp/{1}; do sleep 0.02; done"
    record = await worked(
        script(
            tmp_path,
            f"""
turns:
  - tasks:
      - {{host: web-01, do: [{{run: {meet.format("a", "b")}}}]}}
      - {{host: web-01, do: [{{run: {meet.format("b", "a")}}}]}}
      - {{host: db-01, do: [{{run: sleep 0.1}}]}}
""",
        ),
        fleet,
    )
    assert [task.tool_calls[0].outcome for task in record.tasks] == ["ran"] * 3
    starts = [task.started_at for task in record.tasks if task.started_at]
    ends = [task.ended_at for task in record.tasks if task.ended_at]
    assert max(starts) < min(ends)


async def test_files_are_written_and_edited_on_a_real_host(tmp_path: Path, fleet: Fleet) -> None:
    """[P9, P10]"""
    await answered(fleet, "printf '#!/bin/sh\\necho 80\\n' >/tmp/tool; chmod 750 /tmp/tool")
    record = await worked(
        script(
            tmp_path,
            """
turns:
  - tasks:
      - host: web-01
        do:
          - {update: {path: /tmp/tool, old: "80", new: "8080"}}
          - {update: {path: /tmp/tool, old: "missing", new: "x"}}
          - {write: {path: /srv/deep/er/note, content: "é\\n", mode: "0600"}}
          - {write: {path: /tmp, content: "x"}}
""",
        ),
        fleet,
    )
    assert [call.outcome for call in record.tasks[0].tool_calls] == [
        "ran", "failed", "ran", "failed",
    ]  # fmt: skip
    assert await answered(fleet, "/tmp/tool; stat -c '%a %U' /tmp/tool") == "8080\n750 root"
    assert await answered(fleet, "cat /srv/deep/er/note; stat -c %a /srv/deep/er/note") == "é\n600"


async def test_cancelling_kills_what_the_agent_ran(tmp_path: Path, fleet: Fleet) -> None:
    """[P13]"""
    adapter = script(
        tmp_path,
        "turns: [{tasks: [{host: web-01, do: [{run: setsid sleep 4711 & sleep 4711}]}]}]",
    )
    told = Told()
    recorder = Recorder(told, TICKET)
    working = asyncio.create_task(
        adapter.work(Assignment(TICKET, fleet.hosts, (), 60.0, 60.0), recorder)
    )
    await asyncio.wait_for(told.began.wait(), 20)
    await answered(fleet, "until test $(pgrep -cx sleep) = 2; do sleep 0.02; done")
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert (await fleet.hosts["web-01"].run(Command(run="pgrep -x sleep"))).exit_code == 1
    assert recorder.job_record().tasks[0].status == "cancelled"


async def test_the_reference_runs_on_its_hosts(fleet: Fleet) -> None:
    steps = (
        Step(run="echo one >/tmp/made"),
        Step(run="exit 7", on="db-01", exit_code=7),
        Step(run="hostname >/tmp/name", on="db-01"),
        Step(run="cat /tmp/made"),
    )
    record = await worked(ReferenceAdapter(AdapterContext(reference=steps)), fleet)
    assert record.job is not None
    assert record.job.resolution == "success", record.job.resolution_reasoning
    assert [task.host for task in record.tasks] == ["web-01", "db-01", "web-01"]
    assert record.tasks[2].tool_calls[0].output == "one"
    assert await answered(fleet, "cat /tmp/name", "db-01") == "db-01"


async def test_a_reference_step_past_its_limit_is_a_failed_reference(fleet: Fleet) -> None:
    steps = (Step(run="sleep 60", timeout=0.3), Step(run="touch /tmp/never"))
    record = await worked(ReferenceAdapter(AdapterContext(reference=steps)), fleet)
    assert record.job is not None
    assert record.job.resolution == "agentic_failure"
    assert record.tasks[0].tool_calls[0].outcome == "timed_out"
    assert await answered(fleet, "ls /tmp") == ""
