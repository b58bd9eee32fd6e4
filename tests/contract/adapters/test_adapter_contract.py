"""What every adapter keeps to, whoever wrote it: one body of tests, every registered adapter."""

from __future__ import annotations

import asyncio
import atexit
import shlex
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.integration.example_service import example_service

from opsdrill.agents.adapter import ADAPTERS, Adapter, AdapterContext, Assignment
from opsdrill.errors import OpsDrillError, UsageError
from opsdrill.evidence.cut import CALL_KEPT
from opsdrill.evidence.recorder import Recorder, assemble
from opsdrill.hosts.drivers.fake import FakeFleet, FakeHost
from opsdrill.hosts.drivers.fake_script import FakeAnswer, FakeScript, Scripted
from opsdrill.model.agent import AgentSettings, Budgets
from opsdrill.model.event import (
    JobCreated,
    JobEnded,
    JobEvent,
    NoJob,
    Posted,
    Resolved,
    TaskCreated,
    TaskEnded,
    TaskStarted,
    ToolCalled,
    ToolReturned,
)
from opsdrill.model.host import OUTPUT_LIMIT
from opsdrill.model.scenario import Step
from opsdrill.model.ticket import Ticket

TICKET = Ticket(title="The shop is down", body="Please mend it.")
HOSTS = ("web-01", "db-01")
RULES = ("Back up a file before you change it.",)
COMMAND_SECONDS = 5.0
LONG = 60.0

SCRIPT = """
format: opsdrill.script/1
plan: Look, then mend.
turns:
  - post: Looking.
    tasks:
      - host: web-01
        description: Look at the web server.
        do: [{run: uptime}, {say: Nothing yet.}, {claim: reboot}]
        end: {status: completed, stop_reason: done, summary: Looked.}
      - host: db-01
        operational_rules: [Never drop a table.]
        do: [{run: df -h}, {mcp: {server: tracker, tool: close, arguments: {id: 7}, refuse: true}}]
  - tasks:
      - host: web-01
        do:
          - {write: {path: /etc/app.conf, content: "port 80"}}
          - {update: {path: /etc/app.conf, old: "80", new: "8080"}}
          - {sleep: 0.001}
          - {run: systemctl restart app}
post: Mended.
resolve: {resolution: success, reasoning: It answers again.}
"""
REFERENCE = (
    Step(run="uptime"),
    Step(run="df -h", on="db-01", user="postgres", timeout=3.0),
    Step(run="vacuum", on="db-01"),
    Step(run="systemctl restart app", on="web-01"),
)

PROGRAM = "opsdrill-ticket post Mended.; opsdrill-ticket resolve success"

Make = Callable[[Path], AdapterContext]


def _script(folder: Path) -> AdapterContext:
    (folder / "agent.yaml").write_text(SCRIPT)
    return AdapterContext(argument="agent.yaml", folder=folder)


@cache
def service() -> str:
    """The address of the example service; it runs until the tests are over."""
    started = ExitStack()
    atexit.register(started.close)
    return started.enter_context(example_service())


CASES: dict[str, Make] = {
    "script": _script,
    "noop": lambda _folder: AdapterContext(),
    "reference": lambda _folder: AdapterContext(reference=REFERENCE),
    "http": lambda _folder: AdapterContext(argument=service()),
    "command": lambda _folder: AdapterContext(argument=f"sh -c {shlex.quote(PROGRAM)}"),
    "llm": lambda _folder: AdapterContext(
        argument="test", settings=AgentSettings(budgets=Budgets(tasks=2))
    ),
}
ANY_HOSTS = ("noop", "llm", "http", "command")
"""Adapters that work on whatever hosts there are, and on none."""
PROGRAMS = ("command",)
"""Adapters that start a program, which talks to hosts itself: that takes real ones."""


class Told:
    """Keeps the events that it is told; `hook` is called with the number of each, from 1."""

    def __init__(self, hook: Callable[[int], None] = lambda _number: None) -> None:
        self.events: list[JobEvent] = []
        self._hook = hook

    def append(self, seq: int, event: JobEvent) -> None:
        assert seq == len(self.events)
        self.events.append(event)
        self._hook(len(self.events))


ANSWERS = FakeScript(otherwise=Scripted(exit_code=0, stdout="ok\n"))


class Drill:
    """One adapter at work on two fake hosts."""

    def __init__(
        self, name: str, folder: Path, script: FakeScript = ANSWERS, told: Told | None = None
    ) -> None:
        self._name = name
        self._folder = folder
        self.told = told or Told()
        self.recorder = Recorder(self.told, TICKET)
        self.fleet = FakeFleet([FakeHost(host, script) for host in HOSTS])

    def answering(self, script: FakeScript) -> Drill:
        """The same drill with other hosts."""
        return Drill(self._name, self._folder, script)

    def adapter(self) -> Adapter:
        return ADAPTERS.get(self._name)(CASES[self._name](self._folder))

    async def work(self) -> list[JobEvent]:
        adapter = self.adapter()
        await adapter.preflight(HOSTS)
        await adapter.work(
            Assignment(TICKET, self.fleet.hosts, RULES, 1800.0, COMMAND_SECONDS), self.recorder
        )
        return self.told.events


@pytest.fixture(params=sorted(set(CASES) & set(ADAPTERS.names())))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def drill(name: str, tmp_path: Path) -> Drill:
    return Drill(name, tmp_path)


def balanced(events: list[JobEvent]) -> None:
    """Tasks are created, started and ended once each, their calls returned in between."""
    open_tasks: set[str] = set()
    open_calls: set[tuple[str, str]] = set()
    seen: Counter[tuple[str, str]] = Counter()
    for event in events:
        match event:
            case TaskCreated() | TaskStarted() | TaskEnded():
                seen[event.event, event.task] += 1
                if isinstance(event, TaskStarted):
                    assert seen["task_created", event.task] == 1
                    open_tasks.add(event.task)
                elif isinstance(event, TaskEnded):
                    assert not [call for call in open_calls if call[0] == event.task]
                    assert event.status not in ("running", "pending")
                    open_tasks.discard(event.task)
            case ToolCalled():
                seen["tool_called", event.call] += 1
                assert event.task in open_tasks
                open_calls.add((event.task, event.call))
            case ToolReturned():
                open_calls.remove((event.task, event.call))
    assert not open_tasks
    assert not open_calls
    assert all(count == 1 for count in seen.values()), seen
    created = {task for event, task in seen if event == "task_created"}
    assert created == {task for event, task in seen if event == "task_ended"}


def test_every_registered_adapter_is_tested() -> None:
    assert set(ADAPTERS.names()) <= set(CASES)


async def test_the_job_is_created_first_and_ended_once_and_last(drill: Drill) -> None:
    events = await drill.work()
    assert isinstance(events[0], JobCreated)
    assert [event for event in events if isinstance(event, JobEnded | NoJob)] == [events[-1]]
    assert sum(isinstance(event, JobCreated) for event in events) == 1


async def test_tasks_and_tool_calls_are_begun_and_ended(drill: Drill) -> None:
    balanced(await drill.work())


async def test_nothing_is_told_after_the_end(drill: Drill) -> None:
    told = len(await drill.work())
    await asyncio.sleep(0.02)
    assert len(drill.told.events) == told


async def test_it_posts_to_the_ticket_as_the_agent_and_resolves(drill: Drill) -> None:
    events = await drill.work()
    posts = [event for event in events if isinstance(event, Posted)]
    assert posts
    assert all(post.author == "agent" for post in posts)
    assert sum(isinstance(event, Resolved) for event in events) == 1


async def test_turns_count_from_one_and_rise(drill: Drill) -> None:
    tasks = [event for event in await drill.work() if isinstance(event, TaskCreated)]
    turns = [task.turn for task in tasks if task.turn is not None]
    assert len(turns) == len(tasks)
    assert turns == sorted(turns)
    assert not turns or turns[0] == 1


async def test_the_operational_rules_are_given_to_every_task(drill: Drill) -> None:
    for event in await drill.work():
        if isinstance(event, TaskCreated):
            assert event.operational_rules is not None
            assert event.operational_rules[: len(RULES)] == RULES


async def test_commands_end_within_their_time_limit(drill: Drill) -> None:
    await drill.work()
    for host in drill.fleet.hosts.values():
        assert all(command.timeout <= COMMAND_SECONDS for command in host.asked)


async def test_what_is_reported_as_run_was_asked_of_that_host(drill: Drill) -> None:
    events = await drill.work()
    hosts = {event.task: event.host for event in events if isinstance(event, TaskCreated)}
    outcomes = {e.call: e.outcome for e in events if isinstance(e, ToolReturned)}
    reported: dict[str, list[object]] = {host: [] for host in HOSTS}
    for event in events:
        if isinstance(event, ToolCalled) and event.kind == "shell":
            assert isinstance(event.arguments, dict)
            if outcomes[event.call] != "claimed":
                reported[hosts[event.task]].append(event.arguments["command"])
    asked = {host.facts.name: [c.run for c in host.asked] for host in drill.fleet.hosts.values()}
    assert reported == asked


async def test_the_same_work_tells_the_same_twice(drill: Drill) -> None:
    first = [event.model_copy(update={"at": None}) for event in await drill.work()]
    again = await drill.answering(ANSWERS).work()
    assert first == [event.model_copy(update={"at": None}) for event in again]


async def test_hosts_that_never_answer_do_not_crash_it(drill: Drill) -> None:
    events = await drill.answering(FakeScript(silent=HOSTS)).work()
    balanced(events)
    assert isinstance(events[-1], JobEnded)
    outcomes = [e for e in events if isinstance(e, ToolReturned) and e.exit_code is not None]
    assert not outcomes, "a host that did not answer gave no exit status"


async def test_output_is_bounded(drill: Drill) -> None:
    """[P14]"""
    loud = FakeScript(
        otherwise=Scripted(exit_code=0, stdout="a" * OUTPUT_LIMIT, stderr="b" * OUTPUT_LIMIT)
    )
    for event in await drill.answering(loud).work():
        if isinstance(event, ToolReturned) and event.output is not None:
            assert len(event.output) <= CALL_KEPT + 100


async def test_a_host_lost_half_way_does_not_crash_it(drill: Drill) -> None:
    mortal = FakeScript(answers=(FakeAnswer(starts_with="", exit_code=0, dies=True),))
    events = await drill.answering(mortal).work()
    balanced(events)
    assert isinstance(events[-1], JobEnded)


def slow(seconds: float) -> FakeScript:
    return FakeScript(answers=(FakeAnswer(starts_with="", exit_code=0, delay=seconds),))


async def stopped_at(point: int, when: str, name: str, folder: Path) -> tuple[Drill, bool]:
    """A drill whose adapter was cancelled at an event; whether the cancellation came through."""

    def stop(number: int) -> None:
        if number == point and when == "soon":
            asyncio.get_running_loop().call_soon(working.cancel)
        elif number == point:
            working.cancel()

    drill = Drill(name, folder, slow(0.001), Told(stop))
    working = asyncio.create_task(drill.work())
    done, _ = await asyncio.wait({working}, timeout=LONG)
    assert done, "it did not stop"
    return drill, working.cancelled()


@pytest.mark.parametrize("when", ["at once", "soon"])
async def test_cancelling_at_any_event_passes_through_and_leaves_nothing(
    name: str, tmp_path: Path, when: str
) -> None:
    """`soon` is in the middle of whatever the adapter waits for after the event."""
    for point in range(1, len(await Drill(name, tmp_path).work()) + 1):
        drill, cancelled = await stopped_at(point, when, name, tmp_path)
        told = list(drill.told.events)
        # `soon` may come after the last event, when there is nothing left to cancel.
        assert cancelled or (when == "soon" and isinstance(told[-1], JobEnded))
        balanced(told)
        hosts = drill.fleet.hosts.values()
        assert [host.running for host in hosts] == [0, 0]
        asked = [len(host.asked) for host in hosts]
        await asyncio.sleep(0.003)
        assert drill.told.events == told
        assert asked == [len(host.asked) for host in hosts]


def _calls(drill: Drill) -> bool:
    return any(isinstance(event, ToolCalled) for event in drill.told.events)


async def test_a_command_cut_short_has_not_run_to_its_end(name: str, tmp_path: Path) -> None:
    """[P13]"""
    if name in PROGRAMS:
        return
    drill = Drill(name, tmp_path, slow(4))
    called = asyncio.Event()
    drill.told = Told(lambda _number: called.set() if _calls(drill) else None)
    drill.recorder = Recorder(drill.told, TICKET)
    working = asyncio.create_task(drill.work())
    calling = asyncio.create_task(called.wait())
    await asyncio.wait({working, calling}, timeout=LONG, return_when=asyncio.FIRST_COMPLETED)
    if working.done():
        calling.cancel()
        assert not _calls(drill)
        return
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    returned = [event for event in drill.told.events if isinstance(event, ToolReturned)]
    cut = [event for event in returned if event.output == "stopped before it ended"]
    assert cut
    assert all((event.outcome, event.exit_code) == ("failed", None) for event in cut)
    assert not any(isinstance(event, JobEnded) for event in drill.told.events)


async def test_preflight_refuses_hosts_that_it_cannot_work_on(drill: Drill, name: str) -> None:
    adapter = drill.adapter()
    await adapter.preflight(HOSTS)
    if name in ANY_HOSTS:
        await adapter.preflight(())
        return
    for hosts in ((), ("mail-01",)):
        with pytest.raises(OpsDrillError) as caught:
            await adapter.preflight(hosts)
        assert caught.value.fault != "agent"


def test_an_argument_that_cannot_be_is_refused_when_it_is_made(name: str, tmp_path: Path) -> None:
    argument = "'none-such.yaml"
    with pytest.raises(UsageError):
        ADAPTERS.get(name)(AdapterContext(argument=argument, folder=tmp_path))


async def test_its_events_make_a_job_record(drill: Drill) -> None:
    events = await drill.work()
    record = drill.recorder.job_record()
    assert record == assemble(TICKET, events)
    assert record.job is not None
    assert record.job.status == "completed"
    assert record.job.resolution is not None
    assert record.coverage.of("tasks").state == "whole"
    created = [event.task for event in events if isinstance(event, TaskCreated)]
    assert [task.id for task in record.tasks] == created
    assert sum(len(task.tool_calls) for task in record.tasks) == sum(
        isinstance(event, ToolReturned) for event in events
    )
    assert type(record).model_validate_json(record.model_dump_json()) == record


OUTCOMES = st.sampled_from(
    [
        Scripted(exit_code=0),
        Scripted(exit_code=3, stdout="\x1b[31m\u202e\x00"),
        Scripted(exit_code=0, dies=True),
        Scripted(timed_out=True),
        Scripted(unreachable=True),
        Scripted(dropped=True),
    ]
)


@given(outcomes=st.lists(OUTCOMES, max_size=8))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_hosts_answer_the_job_is_told_whole(
    name: str, tmp_path: Path, outcomes: list[Scripted]
) -> None:
    if name in PROGRAMS:
        return
    answers = tuple(
        FakeAnswer.model_validate({**outcome.model_dump(), "starts_with": "", "times": 1})
        for outcome in outcomes
    )
    drill = Drill(name, tmp_path, FakeScript(answers=answers))
    events = asyncio.run(drill.work())
    balanced(events)
    assert isinstance(events[-1], JobEnded)
