"""What the recorder takes of the agent's own report, and of where the agent was."""

from __future__ import annotations

import pytest

from opsdrill.errors import EventRefused
from opsdrill.evidence.recorder import Recorder, assemble
from opsdrill.model.event import (
    Confirmed,
    Isolated,
    JobCreated,
    JobEnded,
    JobEvent,
    Reported,
    TaskCreated,
    TaskEnded,
    TaskStarted,
    ToolCalled,
    ToolReturned,
)
from opsdrill.model.job import Witness
from opsdrill.model.ticket import Ticket


class Kept:
    def __init__(self) -> None:
        self.events: list[JobEvent] = []

    def append(self, seq: int, event: JobEvent) -> None:
        self.events.append(event)


def recording(witness: Witness) -> tuple[Recorder, Kept]:
    kept = Kept()
    recorder = Recorder(kept, Ticket())
    called = ToolCalled(
        task="t", call="c", kind="shell", arguments={"command": "ls"}, witness=witness
    )
    for event in (JobCreated(job="j"), TaskCreated(task="t", host="a"), TaskStarted(task="t")):
        recorder.record(event)
    recorder.record(called)
    recorder.record(ToolReturned(task="t", call="c", outcome="ran", exit_code=0))
    return recorder, kept


def test_a_call_of_the_gateway_that_was_reported_has_both_witnesses() -> None:
    recorder, kept = recording("gateway")
    recorder.record(TaskEnded(task="t", status="completed"))
    recorder.record(Reported(by="an agent"))
    recorder.record(Confirmed(task="t", call="c"))
    recorder.record(JobEnded(status="completed"))
    record = recorder.job_record()
    assert record.tasks[0].tool_calls[0].witness == "both"
    assert record.reported_by == "an agent"
    assert assemble(Ticket(), kept.events) == record


@pytest.mark.parametrize("call", ["c", "d"])
def test_nobody_confirms_what_the_gateway_did_not_see(call: str) -> None:
    recorder, _ = recording("agent")
    with pytest.raises(EventRefused, match="the gateway saw no call"):
        recorder.record(Confirmed(task="t", call=call))


def test_how_far_the_agent_was_kept_apart_is_in_the_record() -> None:
    recorder, kept = recording("agent")
    assert recorder.job_record().isolation is None
    recorder.record(Isolated(isolation="none"))
    assert recorder.job_record().isolation == "none"
    assert assemble(Ticket(), kept.events).isolation == "none"
