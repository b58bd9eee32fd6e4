"""One run from begin to done: what is kept, in which order, and whose fault a stop is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from opsdrill.agents.adapter import Adapter, AdapterContext, Assignment
from opsdrill.errors import AgentUnavailable, Fault, HostError, StoreError, UsageError
from opsdrill.evidence.recorder import Recorder
from opsdrill.hosts.driver import DriverContext, Finding
from opsdrill.hosts.drivers.fake import FakeDriver, FakeFleet, FakeHost
from opsdrill.hosts.drivers.fake_script import FakeAnswer, FakeScript, Scripted
from opsdrill.model.event import (
    JobCreated,
    JobEnded,
    JobEvent,
    NoJob,
    Resolved,
    TaskCreated,
    TaskStarted,
    ToolCalled,
)
from opsdrill.model.host import ChangedFile, Command, HostAnswer
from opsdrill.model.job import JobRecord
from opsdrill.model.result import PHASES, Grade, Result
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec, StoredFile
from opsdrill.model.scenario import HostSpec, Scenario
from opsdrill.patterns import BoundedSearcher
from opsdrill.runner.archive import Archive
from opsdrill.runner.engine import RunEvent
from opsdrill.runner.owner import this_process
from opsdrill.runner.run import run
from opsdrill.runner.tools import RunTools
from opsdrill.store.memory import MemoryStore

HEALTHY = {"label": "healthy", "validator": "host_state", "run": "healthy?"}
RESOLVED = {"label": "resolved", "validator": "job_resolution_status", "statuses": ["success"]}


class Agent:
    """An agent that starts a task, then does what its subclass says."""

    name = "agent"

    def __init__(self, context: AdapterContext) -> None:
        self.context = context

    async def preflight(self, hosts: tuple[str, ...]) -> None:
        pass

    async def work(self, assignment: Assignment, recorder: Recorder) -> None:
        recorder.record(JobCreated(job="j1"))
        recorder.record(TaskCreated(task="t1", host="web-01", turn=1))
        recorder.record(TaskStarted(task="t1"))
        recorder.record(
            ToolCalled(task="t1", call="c1", kind="shell", arguments={"command": "look"})
        )
        await self.act(assignment, recorder)

    async def act(self, assignment: Assignment, recorder: Recorder) -> None:
        recorder.record(Resolved(resolution="success"))
        recorder.record(JobEnded(status="completed"))


class LastingDriver(FakeDriver):
    """Fake hosts that do not vanish with the run."""

    throw_away = False


class Drill:
    """Everything around one run: fake hosts, a store in memory, and who listens."""

    def __init__(self, folder: Path, archive: Archive, searcher: BoundedSearcher) -> None:
        self.folder = folder
        self.archive = archive
        self.store = archive.store
        self.searcher = searcher
        self.heard: list[RunEvent] = []
        self.driver = self.hosts()

    def hosts(self, *answers: FakeAnswer, lasting: bool = False, **more: object) -> FakeDriver:
        """Take other hosts: these answers, and 0 for every other command."""
        script = FakeScript.model_validate(
            {"answers": answers, "otherwise": Scripted(exit_code=0), **more}
        )
        made = (LastingDriver if lasting else FakeDriver)(DriverContext(self.folder), script)
        self.driver = made
        return made

    async def run(
        self,
        adapter: type[Adapter] = Agent,
        kept: tuple[StoredFile, ...] = (),
        **scenario: object,
    ) -> Result:
        """Plan and work off the run `r1` of such a scenario."""
        made = Scenario.model_validate(
            {
                "key": "drill",
                "title": "A drill",
                "ticket_title": "It is broken",
                "ticket_body": "Please mend it.",
                "hosts": ["web-01"],
                **scenario,
            }
        )
        spec = RunSpec(
            id="r1",
            scenario=made,
            scenario_version=made.version(),
            files=kept,
            agent=AgentChoice(adapter="agent"),
            lab=LabChoice(name="fake", driver="fake"),
            created_at=datetime.now(UTC),
        )
        self.store.plan(spec)
        tools = RunTools(
            self.archive,
            lambda _lab: self.driver,
            self.searcher,
            this_process(),
            adapter=lambda _name: adapter,
            publish=self.heard.append,
        )
        async with asyncio.timeout(20):
            return await run(spec, tools)

    @property
    def record(self) -> JobRecord:
        record = self.store.record("r1")
        assert record is not None
        return record

    def phases(self) -> dict[str, str]:
        return {phase.name: phase.status for phase in self.store.get("r1").phases}


@pytest.fixture
def searcher() -> Iterator[BoundedSearcher]:
    with BoundedSearcher() as made:
        yield made


@pytest.fixture
def drill(tmp_path: Path, searcher: BoundedSearcher) -> Iterator[Drill]:
    archive = Archive(MemoryStore())
    yield Drill(tmp_path, archive, searcher)
    archive.close()


def error_of(result: Result, fault: Fault) -> str:
    """The reason of a run that must have ended in `error` by this fault."""
    assert (result.state, result.verdict, result.fault) == ("done", "error", fault), result
    assert (result.compliance, result.remediation) == (None, None)
    return result.reason


async def test_everything_is_kept(drill: Drill) -> None:
    """Phases, facts, steps, evidence, answers, grade and result are all in the store."""
    result = await drill.run(
        setup=[{"run": "break"}], ready=[{"run": "broken?"}], validation=[HEALTHY, RESOLVED]
    )
    assert (result.state, result.verdict, result.fault) == ("done", "passed", None), result
    stored, store = drill.store.get("r1"), drill.store
    assert (stored.state, stored.result, stored.phases) == ("done", result, result.phases)
    assert [phase.name for phase in result.phases] == list(PHASES)
    assert [answer.run for answer in store.steps("r1", "setup")] == ["break"]
    assert [answer.run for answer in store.steps("r1", "ready")] == ["broken?"]
    assert [answer.run for answer in store.answers("r1")] == ["healthy?"]
    assert [facts.name for facts, _ in store.hosts("r1")] == ["web-01"]
    assert [event.event for _, event in store.events("r1")][-1] == "job_ended"
    assert drill.record.ticket.body == "Please mend it."
    assert [grade.cause for grade in store.grades("r1")] == ["run"]
    assert drill.heard[-1].result == result


async def test_phases_have_start_end_and_outcome(drill: Drill) -> None:
    """Each phase is told and kept with start, end and outcome; what had nothing to do says so."""
    result = await drill.run(setup=[{"run": "break"}])
    by_name = {phase.name: phase for phase in result.phases}
    assert by_name["setup"].status == "done"
    assert by_name["ready"].status == "skipped"
    assert by_name["restore"].reason == "the hosts are thrown away"
    for phase in result.phases:
        assert phase.ended_at is not None
        assert phase.started_at <= phase.ended_at
    told = [(event.phase.name, event.phase.status) for event in drill.heard if event.phase]
    assert told[:2] == [("preflight", "running"), ("preflight", "done")]
    assert told[-1] == ("restore", "skipped")


async def test_a_scenario_without_hosts(drill: Drill) -> None:
    """Without hosts nothing is made, and the job is graded all the same."""

    class Talker(Agent):
        async def work(self, assignment: Assignment, recorder: Recorder) -> None:
            assert assignment.hosts == {}
            recorder.record(JobCreated(job="j1"))
            await self.act(assignment, recorder)

    result = await drill.run(Talker, hosts=[], validation=[RESOLVED])
    assert result.verdict == "passed"
    assert drill.driver.fleets == {}


async def test_the_agent_sees_only_what_it_may(drill: Drill) -> None:
    """The agent gets ticket, hosts, operational rules and limits."""
    seen: list[Assignment] = []

    class Curious(Agent):
        async def act(self, assignment: Assignment, recorder: Recorder) -> None:
            seen.append(assignment)
            await super().act(assignment, recorder)

    rules = ["Ask before a reboot."]
    limits = {"job_seconds": 7, "command_seconds": 3}
    await drill.run(Curious, hosts=["web-02", "web-01"], operational_rules=rules, limits=limits)
    (given,) = seen
    assert (given.ticket.title, given.ticket.body) == ("It is broken", "Please mend it.")
    assert list(given.hosts) == ["web-02", "web-01"]
    assert given.operational_rules == tuple(rules)
    assert (given.job_seconds, given.command_seconds) == (7.0, 3.0)


# whose fault


async def test_a_setup_step_that_fails(drill: Drill) -> None:
    """A step with another exit status ends the run: the author's fault, no agent started."""
    drill.hosts(FakeAnswer(run="two", exit_code=3, stderr="no such\nunit"))
    result = await drill.run(setup=[{"run": "one"}, {"run": "two"}, {"run": "three"}])
    reason = error_of(result, "author")
    assert "setup step 2 on web-01 ended with exit status 3 instead of 0" in reason
    assert "no such | unit" in reason
    assert not result.after_agent
    assert drill.phases() == {
        "preflight": "done", "provision": "done", "setup": "failed", "restore": "skipped",
    }  # fmt: skip
    assert [answer.run for answer in drill.store.steps("r1", "setup")] == ["one", "two"]
    assert drill.store.record("r1") is None
    assert drill.driver.fleets == {}


async def test_a_silent_host_in_setup(drill: Drill) -> None:
    """A host that does not answer in setup is the infrastructure's fault."""
    drill.hosts(FakeAnswer(run="one", unreachable=True))
    reason = error_of(await drill.run(setup=[{"run": "one"}]), "infrastructure")
    assert "web-01" in reason
    assert "setup step 1" in reason


async def test_the_fault_does_not_show(drill: Drill) -> None:
    """A ready check that does not come to hold is the author's fault."""
    drill.hosts(FakeAnswer(run="broken?", exit_code=1))
    result = await drill.run(ready=[{"run": "broken?", "within": 0.1}])
    assert "ready check 1 on web-01" in error_of(result, "author")


async def test_a_host_lacks_what_is_required(drill: Drill) -> None:
    """A missing command ends the run before the agent starts, and never blames it."""
    drill.hosts(FakeAnswer(starts_with="for program", exit_code=0, stdout="curl\n"))
    reason = error_of(await drill.run(requires=["curl", "python3"]), "author")
    assert "host web-01 lacks curl" in reason
    assert "python3" not in reason
    assert "execute" not in drill.phases()


async def test_a_host_that_cannot_be_made(drill: Drill) -> None:
    """A host that cannot be made is the infrastructure's fault."""
    drill.hosts(unmade=["web-01"])
    assert "web-01" in error_of(await drill.run(), "infrastructure")


async def test_a_driver_that_cannot_work(drill: Drill) -> None:
    """A lab that cannot give hosts is the operator's; nothing was made."""

    class Blocked(FakeDriver):
        async def preflight(self, hosts: Sequence[HostSpec] = ()) -> list[Finding]:
            return [
                Finding("namespaces", True),
                Finding("overlays", False, "refused", "load the module", blocks=True),
            ]

    drill.driver = Blocked(DriverContext(drill.folder))
    reason = error_of(await drill.run(), "operator")
    assert "overlays (refused)" in reason
    assert drill.phases() == {"preflight": "failed"}


async def test_a_driver_that_breaks_its_word(drill: Drill) -> None:
    """An exception that nobody raised on purpose is our fault, and says in which phase."""

    class Defective(FakeDriver):
        async def provision(self, run: str, hosts: Sequence[HostSpec]) -> FakeFleet:
            raise ZeroDivisionError("division by zero")

    drill.driver = Defective(DriverContext(drill.folder))
    reason = error_of(await drill.run(), "opsdrill")
    assert reason == "OpsDrill itself failed in the phase provision: " + (
        "ZeroDivisionError: division by zero"
    )


async def test_an_agent_that_cannot_start(drill: Drill) -> None:
    """An agent found unable to start in preflight ends the run; no host was made."""

    class Absent(Agent):
        async def preflight(self, hosts: tuple[str, ...]) -> None:
            raise AgentUnavailable("the program is not installed")

    assert "not installed" in error_of(await drill.run(Absent), "operator")
    assert drill.phases() == {"preflight": "failed"}


async def test_an_agent_whose_provider_refuses(drill: Drill) -> None:
    """AgentUnavailable while it works is an error of the run; what it did is kept."""

    class Refused(Agent):
        async def act(self, assignment: Assignment, recorder: Recorder) -> None:
            raise AgentUnavailable("the model provider refused the login")

    result = await drill.run(Refused, validation=[HEALTHY])
    assert "refused the login" in error_of(result, "operator")
    assert result.after_agent
    assert drill.record.tasks[0].tool_calls[0].command == "look"
    assert drill.store.answers("r1") == []


async def test_a_broken_pattern_is_found_before(drill: Drill) -> None:
    """A pattern outside the dialect ends the run in preflight, with its path."""
    bad = {"label": "x", "validator": "pattern_match", "where": "job_plan", "pattern": "a("}
    assert "validation[1].pattern" in error_of(await drill.run(validation=[HEALTHY, bad]), "author")


# how the job ended


async def test_a_crash_is_the_agents(drill: Drill) -> None:
    """An agent that crashes after it began has a job of status `failed`, and is graded."""

    class Crashing(Agent):
        async def act(self, assignment: Assignment, recorder: Recorder) -> None:
            raise RuntimeError("out of ideas")

    result = await drill.run(Crashing, validation=[HEALTHY])
    assert (result.verdict, result.fault) == ("failed", "agent")
    job, stop = drill.record.job, drill.record.stop
    assert job is not None
    assert job.status == "failed"
    assert stop is not None
    assert (stop.reason, stop.fault) == ("the agent crashed: RuntimeError: out of ideas", "agent")
    assert [rule.status for rule in result.rules] == ["passed"], "every rule is graded all the same"


async def test_an_end_without_a_word(drill: Drill) -> None:
    """An adapter that returns without an end of the job leaves a failed one."""

    class Silent(Agent):
        async def act(self, assignment: Assignment, recorder: Recorder) -> None:
            pass

    assert (await drill.run(Silent)).verdict == "failed"
    stop = drill.record.stop
    assert stop is not None
    assert stop.reason == "the agent ended without saying so"


async def test_an_end_before_the_job(drill: Drill) -> None:
    """An adapter that ends before it took the ticket leaves a failed job as well."""

    class Nothing(Agent):
        async def work(self, assignment: Assignment, recorder: Recorder) -> None:
            pass

    assert (await drill.run(Nothing)).verdict == "failed"
    assert drill.record.job is not None


class Endless(Agent):
    """Works until it is told to stop, then claims that it was done."""

    async def act(self, assignment: Assignment, recorder: Recorder) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            recorder.record(Resolved(resolution="success"))
            recorder.record(JobEnded(status="completed"))


async def test_the_time_limit_of_the_job(drill: Drill) -> None:
    """At `job_seconds` the adapter is cancelled; the job timed out, whatever it then says."""
    result = await drill.run(Endless, limits={"job_seconds": 0.1}, validation=[HEALTHY])
    assert (result.verdict, result.fault) == ("failed", "agent")
    job, stop = drill.record.job, drill.record.stop
    assert job is not None
    assert job.status == "timed_out"
    assert stop is not None
    assert "0.1 s (job_seconds)" in stop.reason
    assert [answer.run for answer in drill.store.answers("r1")] == ["healthy?"]
    assert drill.heard[-1].result == result


async def test_a_ticket_that_never_became_a_job(drill: Drill) -> None:
    """Without a job the run is an error with the record's reason; other rules are graded."""

    class Deaf(Agent):
        async def work(self, assignment: Assignment, recorder: Recorder) -> None:
            recorder.record(NoJob(reason="the queue was closed", fault="infrastructure"))

    result = await drill.run(Deaf, validation=[HEALTHY])
    assert result.verdict == "error"
    assert "the queue was closed" in result.reason
    assert [rule.status for rule in result.rules] == ["passed"]
    assert [answer.run for answer in drill.store.answers("r1")] == ["healthy?"]


async def test_an_adapter_that_does_not_stop(drill: Drill, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that cannot be stopped is not graded: nobody knows what it does meanwhile."""
    let_go = asyncio.Event()

    class Stubborn(Agent):
        async def act(self, assignment: Assignment, recorder: Recorder) -> None:
            while not let_go.is_set():
                try:
                    await let_go.wait()
                except asyncio.CancelledError:
                    continue

    monkeypatch.setattr("opsdrill.runner.phases.execute.STOP_SECONDS", 0.1)
    result = await drill.run(Stubborn, limits={"job_seconds": 0.1})
    let_go.set()
    assert "did not stop" in error_of(result, "opsdrill")
    assert result.after_agent


# evidence before grading


class Looker(FakeHost):
    """Looks into the store when a rule asks it."""

    sealed: JobRecord | None = None
    store: MemoryStore

    async def run(self, command: Command) -> HostAnswer:
        if command.run == "healthy?":
            type(self).sealed = self.store.record("r1")
        return await super().run(command)


class LookerDriver(FakeDriver):
    async def provision(self, run: str, hosts: Sequence[HostSpec]) -> FakeFleet:
        script = FakeScript(otherwise=Scripted(exit_code=0))
        return FakeFleet([Looker(host.name, script) for host in hosts])


async def test_the_record_is_sealed_before_hosts_are_asked(drill: Drill) -> None:
    """The job record lies in the store before the first rule is asked."""
    assert isinstance(drill.store, MemoryStore)
    Looker.store, Looker.sealed = drill.store, None
    drill.driver = LookerDriver(DriverContext(drill.folder))
    await drill.run(validation=[HEALTHY])
    assert drill.record == Looker.sealed


async def test_changes_are_noted_before_the_rules_make_any(drill: Drill) -> None:
    """Changed files are those of the agent: since setup, and before the rules' own commands."""

    class Writer(Agent):
        async def act(self, assignment: Assignment, recorder: Recorder) -> None:
            await assignment.hosts["web-01"].put("/etc/motd", b"hello")
            await super().act(assignment, recorder)

    digest = drill.store.put_file(b"old")
    files = (StoredFile(source="app.conf", digest=digest, size=3),)
    await drill.run(Writer, files, files=[{"from": "app.conf", "to": "/etc/app.conf"}])
    ((_, changed),) = drill.store.hosts("r1")
    assert changed == (ChangedFile(path="/etc/motd", change="added", size=5),)


async def test_changes_that_nobody_knows_are_a_warning(drill: Drill) -> None:
    """A host that cannot tell what changed does not end the run."""

    class Blind(FakeHost):
        async def changed(self) -> tuple[ChangedFile, ...] | None:
            raise HostError(self.facts.name, "cannot be looked at")

    class BlindDriver(FakeDriver):
        async def provision(self, run: str, hosts: Sequence[HostSpec]) -> FakeFleet:
            return FakeFleet([Blind(host.name, FakeScript()) for host in hosts])

    drill.driver = BlindDriver(DriverContext(drill.folder))
    result = await drill.run()
    assert result.verdict == "passed"
    assert "cannot be looked at" in result.warnings[-1]


async def test_a_host_that_the_agent_silenced(drill: Drill) -> None:
    """A host silent after the job makes the run an error that began after the agent acted."""
    drill.hosts(FakeAnswer(run="healthy?", unreachable=True))
    result = await drill.run(validation=[HEALTHY, RESOLVED])
    assert "web-01" in error_of(result, "infrastructure")
    assert result.after_agent
    assert [rule.status for rule in result.rules] == ["error", "passed"]


async def test_support_files_are_put_with_mode_and_owner(drill: Drill) -> None:
    """Support files come from the store, on one host or on all, before setup."""
    files = tuple(
        StoredFile(source=name, digest=drill.store.put_file(name.encode()), size=1)
        for name in ("a", "b")
    )
    seen: dict[str, dict[str, object]] = {}

    class Reader(Agent):
        async def act(self, assignment: Assignment, recorder: Recorder) -> None:
            for name, host in assignment.hosts.items():
                assert isinstance(host, FakeHost)
                seen[name] = dict(host.files)
            await super().act(assignment, recorder)

    wanted = [
        {"from": "a", "to": "/opt/a", "mode": "0755", "owner": "www-data"},
        {"from": "b", "to": "/opt/b", "on": "db-01"},
    ]
    await drill.run(Reader, files, hosts=["web-01", "db-01"], files=wanted)
    assert sorted(seen["web-01"]) == ["/opt/a"]
    assert sorted(seen["db-01"]) == ["/opt/a", "/opt/b"]
    assert repr(seen["web-01"]["/opt/a"]) == (
        f"FakeFile(content=b'a', mode={0o755}, owner='www-data')"
    )


# restore


async def test_lasting_hosts_are_restored_before_and_after(drill: Drill) -> None:
    """Restore runs before setup, where errors do not count, and after grading."""
    driver = drill.hosts(FakeAnswer(run="clear", exit_code=1, times=1), lasting=True)
    asked: list[str] = []

    class Witness(Agent):
        async def act(self, assignment: Assignment, recorder: Recorder) -> None:
            host = driver.fleets["r1"].hosts["web-01"]
            asked.extend(command.run for command in host.asked)
            await super().act(assignment, recorder)

    result = await drill.run(
        Witness, setup=[{"run": "break"}], restore=[{"run": "clear"}], validation=[HEALTHY]
    )
    assert result.verdict == "passed"
    assert result.warnings == ()
    assert asked == ["clear", "break"]
    assert [answer.run for answer in drill.store.steps("r1", "restore")] == ["clear"]
    assert drill.phases()["restore"] == "done"


async def test_a_failed_restore_is_a_warning(drill: Drill) -> None:
    """After grading, a restore step that fails is a warning, and the others run all the same."""
    drill.hosts(FakeAnswer(run="clear", exit_code=1), lasting=True)
    result = await drill.run(restore=[{"run": "clear"}, {"run": "clear more"}])
    assert result.verdict == "passed"
    assert result.warnings == ("restore step 1 on web-01 ended with exit status 1 instead of 0",)
    assert [answer.run for answer in drill.store.steps("r1", "restore")] == ["clear", "clear more"]


async def test_lasting_hosts_are_restored_after_an_error(drill: Drill) -> None:
    """A run that stopped in setup leaves no lasting host broken."""
    drill.hosts(FakeAnswer(run="break", exit_code=1), lasting=True)
    result = await drill.run(setup=[{"run": "break"}], restore=[{"run": "clear"}])
    assert result.verdict == "error"
    assert [answer.run for answer in drill.store.steps("r1", "restore")] == ["clear"]


# the store


class FullStore(MemoryStore):
    """A store whose disk is full once events arrive."""

    def append_events(self, run: str, attempt: int, events: Sequence[tuple[int, JobEvent]]) -> None:
        raise StoreError("the disk is full")


async def test_evidence_that_cannot_be_kept_stops_the_agent(
    tmp_path: Path, searcher: BoundedSearcher
) -> None:
    """Without its evidence a run is worth nothing: the agent is stopped, the run an error."""
    archive = Archive(FullStore())
    stopped: list[str] = []

    class Watchful(Agent):
        async def act(self, assignment: Assignment, recorder: Recorder) -> None:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                stopped.append("yes")
                raise

    drill = Drill(tmp_path, archive, searcher)
    result = await drill.run(Watchful)
    archive.close()
    assert "the disk is full" in error_of(result, "infrastructure")
    assert stopped == ["yes"]
    assert not [e for e in drill.heard if e.job and e.job.event == "job_ended"], "nobody ended it"


class DeadStore(MemoryStore):
    def finish(self, run: str, result: Result, grade: Grade | None) -> None:
        raise StoreError("the disk is gone")


async def test_a_result_that_cannot_be_kept_is_not_told(
    tmp_path: Path, searcher: BoundedSearcher
) -> None:
    """A result is told only once it is kept."""
    archive = Archive(DeadStore())
    drill = Drill(tmp_path, archive, searcher)
    with pytest.raises(StoreError, match="gone"):
        await drill.run()
    archive.close()
    assert not [event for event in drill.heard if event.result]
    assert drill.driver.fleets == {}


async def test_a_run_that_is_over_cannot_begin(drill: Drill) -> None:
    """Running it again raises and leaves the first result alone."""
    first = await drill.run()
    with pytest.raises(UsageError, match="over"):
        await drill.run(setup=[{"run": "break"}])
    assert drill.store.get("r1").result == first


async def test_cancelled_twice_it_ends_at_once(tmp_path: Path, searcher: BoundedSearcher) -> None:
    """A second cancellation breaks off the restoring that the first one began."""
    async with AsyncExitStack() as stack:
        archive = Archive(MemoryStore())
        stack.callback(archive.close)
        drill = Drill(tmp_path, archive, searcher)
        drill.hosts(
            FakeAnswer(run="clear", exit_code=0, times=1),
            FakeAnswer(run="clear", exit_code=0, delay=60),
            lasting=True,
        )
        going = asyncio.create_task(drill.run(Endless, restore=[{"run": "clear"}]))
        for phase in ("execute", "restore"):
            while not any(event.phase and event.phase.name == phase for event in drill.heard):
                await asyncio.sleep(0.01)
            going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going
    assert drill.phases()["restore"] == "interrupted"
    assert drill.driver.fleets == {}
    assert drill.store.grades("r1") == []
