"""The phases made of steps: setup, ready, requires, validate, restore, and their messages."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsdrill.errors import (
    HostError,
    HostUnreachable,
    NotReady,
    RequirementMissing,
    SetupFailed,
)
from opsdrill.hosts.command import missing_programs
from opsdrill.hosts.drivers.fake import FakeHost
from opsdrill.hosts.drivers.fake_script import FakeAnswer, FakeScript, Scripted
from opsdrill.model.host import Command, HostAnswer
from opsdrill.model.scenario import ReadyCheck, Scenario
from opsdrill.runner.phases.ready import holds, ready
from opsdrill.runner.phases.requires import requires
from opsdrill.runner.phases.restore import restore
from opsdrill.runner.phases.setup import setup
from opsdrill.runner.phases.steps import HOSTS_AT_ONCE, TAIL_CHARACTERS, outcome, tail
from opsdrill.runner.phases.validate import ask_hosts


def scenario(**fields: object) -> Scenario:
    return Scenario.model_validate(
        {"key": "d", "title": "D", "ticket_title": "T", "hosts": ["web-01", "db-01"], **fields}
    )


def hosts(
    *answers: FakeAnswer, names: tuple[str, ...] = ("web-01", "db-01")
) -> dict[str, FakeHost]:
    script = FakeScript(answers=answers, otherwise=Scripted(exit_code=0))
    return {name: FakeHost(name, script) for name in names}


# setup


async def test_steps_run_in_order_on_their_hosts() -> None:
    """Steps run in the order written, on the first host unless `on` says otherwise."""
    answers: list[HostAnswer] = []
    steps = [{"run": "a"}, {"run": "b", "on": "db-01"}, {"run": "c"}]
    await setup(scenario(setup=steps), hosts(), answers)
    assert [(answer.on, answer.run) for answer in answers] == [
        ("web-01", "a"), ("db-01", "b"), ("web-01", "c"),
    ]  # fmt: skip


async def test_a_step_has_user_and_timeout() -> None:
    """`user` and `timeout` are the step's; without them root and `command_seconds`."""
    fakes = hosts()
    steps = [{"run": "a"}, {"run": "b", "user": "www-data", "timeout": 7}]
    await setup(scenario(setup=steps, limits={"command_seconds": 5}), fakes, [])
    assert fakes["web-01"].asked == [
        Command(run="a", user="root", timeout=5.0),
        Command(run="b", user="www-data", timeout=7.0),
    ]


async def test_a_step_may_expect_another_exit_status() -> None:
    """A step that ends with its `exit_code` is right, and 0 is then wrong."""
    steps = [{"run": "a", "exit_code": 3}]
    await setup(scenario(setup=steps), hosts(FakeAnswer(run="a", exit_code=3)), [])
    with pytest.raises(SetupFailed, match="exit status 0 instead of 3"):
        await setup(scenario(setup=steps), hosts(), [])


async def test_a_step_that_hangs() -> None:
    """A time-out is no exit status, not even where 124 was expected."""
    steps = [{"run": "a", "exit_code": 124, "timeout": 0.05}]
    with pytest.raises(SetupFailed, match=r"setup step 1 on web-01 gave no exit status within"):
        await setup(scenario(setup=steps), hosts(FakeAnswer(run="a", exit_code=0, delay=9)), [])


async def test_all_steps_together_have_a_limit() -> None:
    """`setup_seconds` bounds all steps together: a step gets no more than what is left."""
    slow = hosts(FakeAnswer(run="a", exit_code=0, delay=0.2))
    limits = {"setup_seconds": 0.3, "command_seconds": 60}
    with pytest.raises(SetupFailed, match=r"setup step 2 .* 0.3 s of `setup_seconds`"):
        await setup(scenario(setup=[{"run": "a"}] * 9, limits=limits), slow, [])


async def test_a_lost_connection_is_no_status() -> None:
    """What became of a step whose connection was lost is not known: the infrastructure's."""
    dropped = hosts(FakeAnswer(run="a", dropped=True))
    with pytest.raises(HostError, match="host web-01: lost the connection in setup step 1"):
        await setup(scenario(setup=[{"run": "a"}]), dropped, [])


# ready


async def test_ready_is_asked_again_until_it_holds() -> None:
    """A check that fails at first is asked again; only its last answer is kept."""
    fakes = hosts(FakeAnswer(run="up?", exit_code=1, times=2))
    answers: list[HostAnswer] = []
    await ready(scenario(ready=[{"run": "up?"}]), fakes, answers)
    assert len(fakes["web-01"].asked) == 3
    assert [answer.exit_code for answer in answers] == [0]


async def test_who_waits_for_a_check_is_told_which() -> None:
    """Once, and not for a check that holds in a moment."""
    told: list[str] = []
    checks = scenario(ready=[{"run": "soon"}, {"run": "late", "within": 7}])
    fakes = hosts(
        FakeAnswer(run="soon", exit_code=1, times=2), FakeAnswer(run="late", exit_code=1, times=6)
    )
    await ready(checks, fakes, [], told.append)
    assert told == ["waits up to 7 s for ready check 2 on web-01"]


async def test_ready_gives_up() -> None:
    """After `within` seconds the check has failed, with how it ended last."""
    fakes = hosts(FakeAnswer(run="up?", exit_code=1, stdout="still down\n"))
    answers: list[HostAnswer] = []
    with pytest.raises(NotReady, match=r"does not hold after 0.2 s: .*status 1.*still down"):
        await ready(scenario(ready=[{"run": "up?", "within": 0.2}]), fakes, answers)
    assert [answer.exit_code for answer in answers] == [1]
    assert len(fakes["web-01"].asked) > 1


@pytest.mark.parametrize(
    ("check", "answer", "right"),
    [
        ({}, {"exit_code": 0}, True),
        ({}, {"exit_code": 1}, False),
        ({"exit_code": 3}, {"exit_code": 3}, True),
        ({"exit_code": 3}, {"exit_code": 0}, False),
        ({"fails": True}, {"exit_code": 1}, True),
        ({"fails": True}, {"exit_code": 0}, False),
        ({"fails": True}, {"timed_out": True}, False),
        ({"exit_code": 124}, {"timed_out": True}, False),
        ({"fails": True}, {"dropped": True}, False),
    ],
)
def test_what_holds(check: dict[str, object], answer: dict[str, object], right: bool) -> None:
    """`exit_code`, 0 without one; `fails` is any status but 0; no status proves nothing."""
    given = HostAnswer.model_validate({"on": "web-01", "run": "x", **answer})
    assert holds(ReadyCheck.model_validate({"run": "x", **check}), given) is right


async def test_a_silent_host_is_not_asked_again() -> None:
    """A host that does not answer ends the wait at once."""
    fakes = hosts(FakeAnswer(run="up?", unreachable=True))
    with pytest.raises(HostUnreachable, match="ready check 1"):
        await ready(scenario(ready=[{"run": "up?", "within": 60}]), fakes, [])


# requires


async def test_requires_names_everything_a_host_lacks() -> None:
    """All that a host lacks is named at once, with the host."""
    fakes = hosts(FakeAnswer(starts_with="for program", on="db-01", exit_code=0, stdout="a\nb\n"))
    with pytest.raises(RequirementMissing, match="host db-01 lacks a, b, which"):
        await requires(scenario(requires=["a", "b", "c"]), fakes, [])


async def test_requires_by_host() -> None:
    """Commands listed for one host are asked there only."""
    fakes = hosts()
    await requires(scenario(requires={"db-01": ["psql"]}), fakes, [])
    assert fakes["web-01"].asked == []
    assert "psql" in fakes["db-01"].asked[0].run


async def test_requires_users_and_systemd() -> None:
    """`users` and `systemd` are tried on every host."""
    fakes = hosts(
        FakeAnswer(run="id -u", exit_code=1), FakeAnswer(starts_with="test -d", exit_code=1)
    )
    with pytest.raises(RequirementMissing, match="web-01 lacks systemd, users other than root"):
        await requires(scenario(requires=["users", "systemd"]), fakes, [])
    fakes = hosts(FakeAnswer(run="id -u", exit_code=0, stdout="65534\n"))
    await requires(scenario(requires=["users", "systemd"]), fakes, [])
    assert [command.user for command in fakes["web-01"].asked] == ["root", "nobody"]


async def test_a_check_that_fails_is_not_an_answer() -> None:
    """A host whose check ended wrongly was not asked: nothing is said to be missing or there."""
    fakes = hosts(FakeAnswer(starts_with="for program", exit_code=2))
    with pytest.raises(HostError, match="the check of `requires` ended with exit status 2"):
        await requires(scenario(requires=["a"]), fakes, [])


@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_the_check_in_a_real_shell(shell: str) -> None:
    """The text prints what is missing, also for odd names, and ends with 0."""
    programs = ("cat", "nothing-like-this", "[", "a+b", "sh", "x.y")
    done = subprocess.run(
        [shell, "-c", missing_programs(programs)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["nothing-like-this", "a+b", "x.y"]
    assert done.stderr == ""


# validate


def check(run: str, on: str | None = None) -> dict[str, object]:
    return {"label": run, "validator": "host_state", "run": run, **({"on": on} if on else {})}


async def test_answers_come_in_the_order_of_the_rules() -> None:
    """However long hosts take, answers stand in the order of the rules."""
    rules = [check("a"), check("b", "db-01"), check("c"), check("d", "db-01")]
    fakes = hosts(FakeAnswer(run="a", exit_code=0, delay=0.1))
    answers: list[HostAnswer] = []
    await ask_hosts(scenario(validation=rules), fakes, answers)
    assert [answer.run for answer in answers] == ["a", "b", "c", "d"]
    assert [command.run for command in fakes["web-01"].asked] == ["a", "c"]


@pytest.mark.parametrize(
    ("number", "at_once"), [(8, 8), (HOSTS_AT_ONCE, HOSTS_AT_ONCE), (40, HOSTS_AT_ONCE)]
)
async def test_hosts_are_asked_at_the_same_time(number: int, at_once: int) -> None:
    """Different hosts do not wait for each other, but no more than so many are asked at once."""
    names = tuple(f"h{n}" for n in range(number))
    rules = [check(run, name) for name in names for run in ("a", "b")]
    fakes = hosts(FakeAnswer(run="a", exit_code=0, delay=60), names=names)
    made = scenario(hosts=list(names), validation=rules)
    asking = asyncio.create_task(ask_hosts(made, fakes, []))
    for _ in range(10):
        await asyncio.sleep(0)
    assert sum(fake.running for fake in fakes.values()) == at_once
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_silence_is_an_answer_and_does_not_end_the_rest() -> None:
    """Silent, hanging and dropped commands are answers; every later rule is asked."""
    fakes = hosts(FakeAnswer(run="a", unreachable=True), FakeAnswer(run="b", timed_out=True))
    answers: list[HostAnswer] = []
    await ask_hosts(scenario(validation=[check("a"), check("b"), check("c")]), fakes, answers)
    assert [(a.unreachable, a.timed_out, a.exit_code) for a in answers] == [
        (True, None, None), (None, True, None), (None, None, 0),
    ]  # fmt: skip


async def test_stopped_half_way_it_keeps_what_was_answered() -> None:
    """Cancelled, the answers given so far are there."""
    fakes = hosts(FakeAnswer(run="b", exit_code=0, delay=60))
    answers: list[HostAnswer] = []
    asking = asyncio.create_task(
        ask_hosts(scenario(validation=[check("a"), check("b")]), fakes, answers)
    )
    while not fakes["web-01"].asked[1:]:
        await asyncio.sleep(0.01)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert [answer.run for answer in answers] == ["a"]
    assert fakes["web-01"].running == 0


# restore


async def test_restore_runs_every_step() -> None:
    """Every restore step runs, whatever became of the others; each failure is one sentence."""
    fakes = hosts(FakeAnswer(run="a", exit_code=1), FakeAnswer(run="b", unreachable=True))
    steps = [{"run": "a"}, {"run": "b"}, {"run": "c", "exit_code": 0}]
    wrong = await restore(scenario(restore=steps), fakes, [])
    assert [line.split(" on ")[0] for line in wrong[:1]] == ["restore step 1"]
    assert "restore step 2" in wrong[1]
    assert len(wrong) == 2
    assert [command.run for command in fakes["web-01"].asked] == ["a", "b", "c"]


# words


def answer(**fields: object) -> HostAnswer:
    return HostAnswer.model_validate({"on": "web-01", "run": "x", **fields})


def test_outcomes_in_words() -> None:
    """Each outcome has words of its own; none reads like another's."""
    assert outcome(answer(exit_code=2)) == "ended with exit status 2"
    assert outcome(answer(timed_out=True, timeout=60.0)) == "gave no exit status within 60 s"
    assert outcome(answer(timed_out=True)) == "gave no exit status in time"
    assert outcome(answer(unreachable=True)) == "gave no answer"


@given(st.text(), st.text())
def test_the_tail_is_one_short_line(out: str, err: str) -> None:
    """Whatever was printed, the tail is one line of bounded length."""
    shown = tail(answer(exit_code=1, stdout=out, stderr=err))
    assert len(shown) <= TAIL_CHARACTERS + 2
    assert len(shown.splitlines()) <= 1


def test_the_tail_prefers_errors(tmp_path: Path) -> None:
    """Errors before ordinary output; the last lines of it."""
    assert tail(answer(exit_code=1, stdout="out", stderr="a\nb\nc\nd\n")) == ": b | c | d"
    assert tail(answer(exit_code=1, stdout="out\n")) == ": out"
    assert tail(answer(exit_code=1)) == ""
