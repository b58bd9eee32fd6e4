"""The controls: noop does nothing, reference runs the scenario's known right fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from opsdrill.agents.adapter import Adapter, AdapterContext, Assignment
from opsdrill.agents.adapters.noop import NoopAdapter
from opsdrill.agents.adapters.reference import ReferenceAdapter
from opsdrill.errors import AgentUnavailable, InvalidInput, UsageError
from opsdrill.evidence.recorder import Recorder
from opsdrill.hosts.drivers.fake import FakeHost
from opsdrill.hosts.drivers.fake_script import FakeAnswer, FakeScript, Scripted
from opsdrill.model.event import JobEvent
from opsdrill.model.job import JobRecord
from opsdrill.model.scenario import Step
from opsdrill.model.ticket import Ticket

TICKET = Ticket(title="T", body="B")
FINE = FakeScript(otherwise=Scripted(exit_code=0))


class Nowhere:
    def append(self, seq: int, event: JobEvent) -> None:
        """Keep nothing."""


def fake(answers: FakeScript = FINE) -> dict[str, FakeHost]:
    return {name: FakeHost(name, answers) for name in ("web-01", "db-01")}


async def worked(adapter: Adapter, hosts: dict[str, FakeHost]) -> JobRecord:
    recorder = Recorder(Nowhere(), TICKET)
    await adapter.preflight(tuple(hosts))
    await adapter.work(Assignment(TICKET, hosts, ("Rule.",), 100.0, 5.0), recorder)
    return recorder.job_record()


def reference(*steps: Step) -> ReferenceAdapter:
    return ReferenceAdapter(AdapterContext(reference=steps))


async def test_noop_touches_no_host_and_says_so() -> None:
    hosts = fake()
    record = await worked(NoopAdapter(AdapterContext()), hosts)
    assert record.job is not None
    assert (record.job.status, record.job.resolution) == ("completed", "no_action")
    assert record.tasks == ()
    assert [message.body for message in record.ticket.messages] == ["I did nothing."]
    assert all(host.asked == [] and host.files == {} for host in hosts.values())


@pytest.mark.parametrize("adapter", [NoopAdapter, ReferenceAdapter])
def test_a_control_takes_no_argument(adapter: type[Adapter], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="takes no argument"):
        adapter(AdapterContext(argument="x", folder=tmp_path))


async def test_reference_runs_consecutive_steps_on_a_host_as_one_task() -> None:
    hosts = fake()
    record = await worked(
        reference(
            Step(run="a"),
            Step(run="b", on="web-01"),
            Step(run="c", on="db-01"),
            Step(run="d"),
        ),
        hosts,
    )
    assert [(task.id, task.turn, task.host) for task in record.tasks] == [
        ("t1", 1, "web-01"),
        ("t2", 2, "db-01"),
        ("t3", 3, "web-01"),
    ]
    assert [command.run for command in hosts["web-01"].asked] == ["a", "b", "d"]
    assert [command.run for command in hosts["db-01"].asked] == ["c"]
    assert [task.description for task in record.tasks] == [
        "Run reference steps 1 to 2.",
        "Run reference step 3.",
        "Run reference step 4.",
    ]
    assert {task.operational_rules for task in record.tasks} == {("Rule.",)}
    assert record.job is not None
    assert (record.job.resolution, record.job.resolution_source) == ("success", "adapter")


async def test_reference_keeps_to_each_steps_user_and_time_limit() -> None:
    hosts = fake()
    await worked(reference(Step(run="a", user="app", timeout=7.0), Step(run="b")), hosts)
    asked = [(command.user, command.timeout) for command in hosts["web-01"].asked]
    assert asked == [("app", 7.0), ("root", 5.0)]


async def test_a_step_that_ends_as_expected_is_right_whatever_its_status() -> None:
    answers = FakeScript(answers=(FakeAnswer(run="a", exit_code=3),))
    record = await worked(reference(Step(run="a", exit_code=3)), fake(answers))
    assert record.job is not None
    assert record.job.resolution == "success"


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (Scripted(exit_code=1), "Reference step 2 ended with 1, not 0."),
        (
            Scripted(timed_out=True),
            "Reference step 2 on web-01 ended with no exit status "
            "(no exit status within 5 s), not 0.",
        ),
        (
            Scripted(unreachable=True),
            "Reference step 2 on web-01 ended with no exit status "
            "(the host does not answer), not 0.",
        ),
    ],
)
async def test_a_wrong_step_stops_the_reference_and_is_named(outcome: Scripted, said: str) -> None:
    answers = FakeScript(
        answers=(FakeAnswer.model_validate({**outcome.model_dump(), "run": "b"}),),
        otherwise=Scripted(exit_code=0),
    )
    hosts = fake(answers)
    steps = (Step(run="a"), Step(run="b"), Step(run="c"), Step(run="d", on="db-01"))
    record = await worked(reference(*steps), hosts)
    assert record.job is not None
    assert (record.job.status, record.job.resolution) == ("completed", "agentic_failure")
    assert record.job.resolution_reasoning == said
    assert [(task.status, task.summary) for task in record.tasks] == [("failed", said)]
    assert [command.run for command in hosts["web-01"].asked] == ["a", "b"]
    assert hosts["db-01"].asked == []


async def test_a_scenario_without_reference_cannot_be_worked_by_it() -> None:
    """The operator chose it, so no grade is lowered."""
    with pytest.raises(AgentUnavailable, match="no reference steps"):
        await reference().preflight(("web-01",))


async def test_a_reference_for_other_hosts_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"reference\[1\]\.on mail-01 is no host"):
        await reference(Step(run="a"), Step(run="a", on="mail-01")).preflight(("web-01",))
    with pytest.raises(InvalidInput, match=r"reference\[0\]\.on the default host is no host"):
        await reference(Step(run="a")).preflight(())
