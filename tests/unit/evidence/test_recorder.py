"""The recorder: events in, one job record out, the same live and from stored events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsdrill.errors import EventRefused
from opsdrill.evidence.recorder import Recorder, assemble
from opsdrill.model.event import (
    JOB_EVENT,
    Covered,
    JobCreated,
    JobEnded,
    JobEvent,
    NoJob,
    Planned,
    Posted,
    Resolved,
    Said,
    TaskCreated,
    TaskEnded,
    TaskStarted,
    ToolCalled,
    ToolReturned,
    Used,
)
from opsdrill.model.job import Coverage, JobRecord, JobStatus, Outcome, Seen, TaskStatus, Usage
from opsdrill.model.ticket import Ticket, TicketMessage

TICKET = Ticket(title="nginx is down", body="please look")
START = datetime(2026, 1, 31, 12, 0, 0, 123456, UTC)


class ListSink:
    def __init__(self) -> None:
        self.kept: list[tuple[int, JobEvent]] = []

    def append(self, seq: int, event: JobEvent) -> None:
        self.kept.append((seq, event))


def ticking(step: timedelta = timedelta(microseconds=1)) -> Callable[[], datetime]:
    moments = [START - step]

    def clock() -> datetime:
        moments[0] += step
        return moments[0]

    return clock


def played(events: Sequence[JobEvent]) -> tuple[Recorder, ListSink]:
    sink = ListSink()
    recorder = Recorder(sink, TICKET, ticking())
    for event in events:
        recorder.record(event)
    return recorder, sink


def shell(task: str, call: str, command: str = "id") -> ToolCalled:
    return ToolCalled(task=task, call=call, kind="shell", arguments={"command": command})


WHOLE: list[JobEvent] = [
    JobCreated(job="j"),
    Planned(plan="look, then mend"),
    Posted(author="agent", body="on it"),
    TaskCreated(
        task="a", host="web-01", turn=1, description="look", operational_rules=("be kind",)
    ),
    TaskCreated(task="b", host="db-01", turn=1, agent="second"),
    TaskStarted(task="b"),
    TaskStarted(task="a"),
    shell("a", "1", "systemctl status nginx"),
    shell("b", "1", "uptime"),
    ToolReturned(task="b", call="1", outcome="ran", exit_code=0, output="up"),
    Said(task="a", text="it is down"),
    ToolReturned(task="a", call="1", outcome="ran", exit_code=3),
    Used(task="a", usage=Usage(model="m", input_tokens=1)),
    Used(task="a", usage=Usage(model="m", input_tokens=5)),
    TaskEnded(task="b", status="completed", stop_reason="done", summary="fine"),
    TaskEnded(task="a", status="failed"),
    Posted(author="requester", body="thanks", name="Ada"),
    Resolved(resolution="partial", reasoning="half"),
    Resolved(resolution="success", reasoning="all", source="adapter"),
    JobEnded(status="completed"),
]


def test_a_whole_job_is_told_in_the_order_it_was_created() -> None:
    """Tasks stand in the order created; calls, messages, times, thread, plan, resolution kept."""
    record = played(WHOLE)[0].job_record()
    assert record.job is not None
    assert (record.job.id, record.job.status, record.job.plan) == (
        "j",
        "completed",
        "look, then mend",
    )
    assert record.job.created_at == START
    assert record.job.ended_at == START + timedelta(microseconds=len(WHOLE) - 1)
    assert [message.body for message in record.ticket.messages] == ["on it", "thanks"]
    assert record.ticket.messages[1].name == "Ada"
    first, second = record.tasks
    assert (first.id, first.turn, first.host, first.status) == ("a", 1, "web-01", "failed")
    assert first.operational_rules == ("be kind",)
    assert second.operational_rules is None
    assert second.agent == "second"
    assert (second.stop_reason, second.summary) == ("done", "fine")
    assert second.started_at is not None
    assert first.started_at == second.started_at + timedelta(microseconds=1)
    (call,) = first.tool_calls
    assert (call.id, call.command, call.outcome, call.exit_code) == (
        "1",
        "systemctl status nginx",
        "ran",
        3,
    )
    assert call.started_at is not None
    assert call.ended_at == call.started_at + timedelta(microseconds=4)
    assert [message.text for message in first.messages] == ["it is down"]
    assert record.stop is None
    assert record.coverage == Coverage(default=Seen(state="whole", why="recorded live"))


def test_the_last_resolution_and_the_last_usage_stand() -> None:
    record = played(WHOLE)[0].job_record()
    assert record.job is not None
    assert (record.job.resolution, record.job.resolution_reasoning) == ("success", "all")
    assert record.job.resolution_source == "adapter"
    assert record.tasks[0].usage == Usage(model="m", input_tokens=5)


def test_events_are_numbered_without_gaps_and_stamped() -> None:
    """Event number `seq` counts from 0; every event that reaches the sink has a time."""
    _, sink = played(WHOLE)
    assert [seq for seq, _ in sink.kept] == list(range(len(WHOLE)))
    assert [event.at for _, event in sink.kept] == [
        START + timedelta(microseconds=n) for n in range(len(WHOLE))
    ]


def test_a_time_of_its_own_stays() -> None:
    at = datetime(2020, 1, 1, 0, 0, 0, 7, UTC)
    recorder, sink = played([JobCreated(job="j", at=at)])
    assert sink.kept[0][1].at == at
    job = recorder.job_record().job
    assert job is not None
    assert job.created_at == at


def test_a_clock_that_is_set_back_makes_no_task_end_before_it_starts() -> None:
    moments = iter([START, START - timedelta(hours=1), START + timedelta(seconds=1)])
    sink = ListSink()
    recorder = Recorder(sink, TICKET, lambda: next(moments))
    for event in WHOLE[:3]:
        recorder.record(event)
    assert [event.at for _, event in sink.kept] == [START, START, START + timedelta(seconds=1)]


def test_times_keep_microseconds_in_the_store() -> None:
    """Times keep microseconds: what is read back from JSON makes the same record."""
    recorder, sink = played(WHOLE)
    stored = [JOB_EVENT.validate_json(JOB_EVENT.dump_json(event)) for _, event in sink.kept]
    record = assemble(TICKET, stored)
    assert record == recorder.job_record()
    assert JobRecord.model_validate_json(record.model_dump_json()) == record


@given(st.integers(0, len(WHOLE)))
def test_live_and_replayed_events_make_the_same_record(length: int) -> None:
    """assemble(events) is the same for live and stored events, wherever they break off."""
    recorder, sink = played(WHOLE[:length])
    stored = [JOB_EVENT.validate_json(JOB_EVENT.dump_json(event)) for _, event in sink.kept]
    assert assemble(TICKET, stored) == recorder.job_record()


def test_the_ticket_keeps_the_messages_it_had() -> None:
    before = TicketMessage(author="requester", body="first")
    ticket = Ticket(title="t", messages=(before,))
    record = assemble(ticket, [Posted(author="agent", body="second"), NoJob(reason="no")])
    assert [message.body for message in record.ticket.messages] == ["first", "second"]
    assert ticket.messages == (before,)


def test_a_ticket_that_never_became_a_job() -> None:
    """`job` is null with the reason, and the stop says whose fault it was."""
    record = assemble(TICKET, [NoJob(reason="the queue is full", fault="operator")])
    assert record.job is None
    assert record.no_job_reason == "the queue is full"
    assert record.stop is not None
    assert record.stop.fault == "operator"
    assert record.coverage.default.state == "whole"


def test_coverage_is_what_the_adapter_said_last() -> None:
    unknown = Coverage(default=Seen(state="unavailable", why="not told"))
    record = assemble(
        TICKET, [JobCreated(job="j"), Covered(coverage=unknown), JobEnded(status="completed")]
    )
    assert record.coverage == unknown


def test_a_killed_run_is_interrupted_and_nothing_in_it_is_whole() -> None:
    """Without JobEnded: status `failed`, stop `interrupted`, not the agent's fault."""
    seen = Coverage(
        default=Seen(state="whole"),
        times=Seen(state="whole"),
        job_plan=Seen(state="unavailable", why="no plan"),
    )
    record = assemble(TICKET, [*WHOLE[:9], Covered(coverage=seen)])
    assert record.job is not None
    assert record.job.status == "failed"
    assert record.job.ended_at is None
    assert record.stop is not None
    assert (record.stop.reason, record.stop.fault) == ("interrupted", "infrastructure")
    assert [task.status for task in record.tasks] == ["running", "running"]
    assert record.coverage.default.state == "partial"
    assert record.coverage.of("times").state == "partial"
    assert record.coverage.of("executed_commands").state == "partial"
    assert record.coverage.job_plan == seen.job_plan


def test_a_run_killed_before_its_first_event_has_no_job() -> None:
    record = assemble(TICKET, [])
    assert record.job is None
    assert record.no_job_reason == "interrupted"
    assert record.coverage.default.state == "partial"


@pytest.mark.parametrize(
    ("stopped", "task", "call"),
    [
        ("timed_out", "timed_out", "timed_out"),
        ("cancelled", "cancelled", "failed"),
        ("failed", "running", "failed"),
        ("completed", "running", "failed"),
    ],
)
def test_what_had_no_end_when_the_job_was_stopped(
    stopped: JobStatus, task: TaskStatus, call: Outcome
) -> None:
    """A command that was running counts as executed: timed out by the limit, else failed."""
    record = assemble(TICKET, [*WHOLE[:9], JobEnded(status=stopped, reason="why", fault="agent")])
    assert record.tasks[0].status == task
    assert record.tasks[0].ended_at is None
    assert record.tasks[0].tool_calls[0].outcome == call
    assert record.tasks[0].tool_calls[0].command == "systemctl status nginx"
    assert record.stop is not None
    assert (record.stop.reason, record.stop.fault) == ("why", "agent")
    assert record.coverage.of("executed_commands").state == "whole"


def test_a_task_that_never_started_is_pending() -> None:
    record = assemble(TICKET, [*WHOLE[:5], JobEnded(status="timed_out")])
    assert [task.status for task in record.tasks] == ["pending", "pending"]
    assert record.tasks[0].started_at is None


def test_a_write_under_way_makes_written_files_partial() -> None:
    """Not seen is not false: whether the file was written when the work stopped is not known."""
    write = ToolCalled(task="a", call="w", kind="write_file", arguments={"path": "/etc/x"})
    record = assemble(TICKET, [*WHOLE[:7], write, JobEnded(status="timed_out")])
    assert record.coverage.of("write_file").state == "partial"
    assert record.coverage.of("update_file").state == "whole"


def test_a_stop_keeps_a_fault_that_came_without_a_reason() -> None:
    record = assemble(TICKET, [JobCreated(job="j"), JobEnded(status="cancelled", fault="operator")])
    assert record.stop is not None
    assert (record.stop.reason, record.stop.fault) == ("cancelled", "operator")


UNDER_WAY = WHOLE[:9]
REFUSED: list[tuple[str, list[JobEvent], JobEvent]] = [
    ("a second job", WHOLE[:1], JobCreated(job="k")),
    ("a job without an id", [], JobCreated(job="")),
    ("no job after a job", WHOLE[:1], NoJob(reason="r")),
    ("a job after no job", [NoJob(reason="r")], JobCreated(job="j")),
    ("a plan without a job", [], Planned(plan="p")),
    ("a task without a job", [], TaskCreated(task="a", host="h")),
    ("an end without a job", [], JobEnded(status="completed")),
    ("a task twice", WHOLE[:4], TaskCreated(task="a", host="h")),
    ("a task without an id", WHOLE[:1], TaskCreated(task="", host="h")),
    ("a task without a host", WHOLE[:1], TaskCreated(task="a", host="")),
    ("an unknown task", WHOLE[:1], TaskStarted(task="zz")),
    ("a start twice", UNDER_WAY, TaskStarted(task="a")),
    ("a call before the start", WHOLE[:4], shell("a", "9")),
    ("a word before the start", WHOLE[:4], Said(task="a", text="t")),
    ("a call twice", UNDER_WAY, shell("a", "1")),
    ("a shell call without a command", UNDER_WAY, ToolCalled(task="a", call="9", kind="shell")),
    ("a return without a call", UNDER_WAY, ToolReturned(task="a", call="9", outcome="ran")),
    ("a return twice", WHOLE[:10], ToolReturned(task="b", call="1", outcome="ran")),
    ("an end that is none", UNDER_WAY, TaskEnded(task="a", status="running")),
    ("a task's second end", WHOLE[:15], TaskEnded(task="b", status="failed")),
    ("a call after the task's end", WHOLE[:15], shell("b", "9")),
    ("a start after the task's end", WHOLE[:15], TaskStarted(task="b")),
    ("a second end", WHOLE, JobEnded(status="failed")),
    ("a post after the end", WHOLE, Posted(author="agent", body="late")),
]


@pytest.mark.parametrize(
    ("before", "event"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_an_event_out_of_order_is_refused_and_changes_nothing(
    before: list[JobEvent], event: JobEvent
) -> None:
    """Neither the sink nor the record takes anything of it; the fault is not the agent's."""
    recorder, sink = played(before)
    record, kept = recorder.job_record(), list(sink.kept)
    with pytest.raises(EventRefused, match=f"the event {event.event} was refused: ") as caught:
        recorder.record(event)
    assert caught.value.fault == "opsdrill"
    assert recorder.job_record() == record
    assert sink.kept == kept
    with pytest.raises(EventRefused):
        assemble(TICKET, [*before, event])


def test_a_call_may_return_after_its_task_ended() -> None:
    events = [*UNDER_WAY, TaskEnded(task="a", status="completed")]
    recorder, _ = played(events)
    recorder.record(ToolReturned(task="a", call="1", outcome="ran", exit_code=0))
    recorder.record(Used(task="a", usage=Usage(input_tokens=3)))
    task = recorder.job_record().tasks[0]
    assert task.tool_calls[0].outcome == "ran"
    assert task.usage == Usage(input_tokens=3)


def test_what_the_sink_could_not_keep_is_not_in_the_record() -> None:
    class FullSink(ListSink):
        full = False

        def append(self, seq: int, event: JobEvent) -> None:
            if self.full:
                raise OSError(28, "No space left on device")
            super().append(seq, event)

    sink = FullSink()
    recorder = Recorder(sink, TICKET, ticking())
    recorder.record(JobCreated(job="j"))
    sink.full = True
    with pytest.raises(OSError, match="No space"):
        recorder.record(Planned(plan="p"))
    sink.full = False
    recorder.record(Planned(plan="q"))
    job = recorder.job_record().job
    assert job is not None
    assert job.plan == "q"
    assert [seq for seq, _ in sink.kept] == [0, 1]


def test_a_job_of_many_commands_keeps_every_one() -> None:
    """A 50,000-command job: the work grows with the events, not with their square."""
    events: list[JobEvent] = [*WHOLE[:7]]
    for number in range(50_000):
        events.append(shell("a", f"c{number}", f"echo {number}"))
        events.append(ToolReturned(task="a", call=f"c{number}", outcome="ran", exit_code=0))
    events.append(JobEnded(status="completed"))
    recorder, sink = played(events)
    calls = recorder.job_record().tasks[0].tool_calls
    assert len(calls) == 50_000
    assert calls[-1].command == "echo 49999"
    assert len(sink.kept) == len(events)
