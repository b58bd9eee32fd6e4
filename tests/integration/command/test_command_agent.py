"""Command agents on real hosts through the gateway: what they are given and what is kept."""

from __future__ import annotations

import re
import shlex
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.command_runs import Range, drill, opened_range

from opsdrill.evidence.mask import Mask
from opsdrill.model.agent import AgentSettings, Budgets

pytestmark = pytest.mark.sandbox

TURNS = [{"hosts": ["a-01", "b-01"]}, {"hosts": ["c-01"]}]


def sh(script: str) -> str:
    return f"bash -c {shlex.quote(script)}"


@pytest.fixture
async def grounds(tmp_path: Path) -> AsyncIterator[Range]:
    async with opened_range(tmp_path / "home") as made:
        yield made


async def test_a_program_repairs_a_host_and_says_so(grounds: Range) -> None:
    """`ssh web-01` just works; the ticket is posted to with a small command."""
    [came] = await grounds.drill(
        drill(
            sh(
                "cat; opsdrill-ticket plan 'look, then mend';"
                "ssh app-01 'cat /etc/app.conf' && ssh app-01 'echo good >/etc/app.conf';"
                "opsdrill-ticket post 'It is mended.';"
                "opsdrill-ticket summary --host app-01 'wrote good';"
                "opsdrill-ticket summary 'All is well.';"
                "opsdrill-ticket resolve success 'it starts'"
            ),
            operational_rules=["No reboots."],
        )
    )
    record = came.record
    assert came.result.verdict == "passed", (came.result, came.err)
    assert record.isolation == "namespaces"
    assert [call.command for call in came.calls] == [
        "cat /etc/app.conf",
        "echo good >/etc/app.conf",
    ]
    assert {(call.witness, call.outcome, call.exit_code) for call in came.calls} == {
        ("gateway", "ran", 0)
    }
    [task] = record.tasks
    assert (task.host, task.turn, task.summary) == ("app-01", None, "wrote good")
    assert task.operational_rules == ("No reboots.",)
    assert task.ended_at == came.calls[-1].ended_at
    assert record.job is not None
    assert (record.job.resolution, record.job.resolution_source) == ("success", "agent")
    assert (record.job.plan, record.job.status) == ("look, then mend", "completed")
    assert [message.body for message in record.ticket.messages] == ["It is mended.", "All is well."]
    assert "# The application does not start\n" in came.out
    assert "- No reboots." in came.out and "- app-01 (as root)" in came.out
    assert came.err == ""


@pytest.mark.parametrize(
    ("end", "resolution", "source", "status"),
    [
        ("exit 0", "success", "exit_status", "completed"),
        ("exit 3", None, "exit_status", "failed"),
        ("kill -SEGV $$", None, "exit_status", "failed"),
        ("opsdrill-ticket resolve partial; exit 3", "partial", "agent", "completed"),
        ("opsdrill-ticket resolve success; kill -9 $$", "success", "agent", "failed"),
    ],
)
async def test_how_it_ends_is_how_the_job_ends(
    grounds: Range, end: str, resolution: str | None, source: str, status: str
) -> None:
    """Exit status 0 is `success`, any other none; what it says itself overrides that."""
    [came] = await grounds.drill(drill(sh(end)))
    job = came.record.job
    assert job is not None
    assert (job.resolution, job.resolution_source, job.status) == (resolution, source, status)


async def test_tasks_and_turns_come_from_the_hosts_and_the_times(grounds: Range) -> None:
    """[W2.2]"""
    script = "ssh a-01 sleep 0.3 & ssh b-01 sleep 0.3; wait; ssh c-01 true"
    turns = {"label": "turns", "validator": "turns", "turns": TURNS}
    [came] = await grounds.drill(
        drill(sh(script), hosts=["a-01", "b-01", "c-01"], validation=[turns])
    )
    assert sorted(task.host for task in came.record.tasks) == ["a-01", "b-01", "c-01"]
    assert came.result.rules[0].status == "passed", came.result.rules


async def test_what_it_is_given(grounds: Range, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANTED", "yes")
    monkeypatch.setenv("UNWANTED", "no")
    settings = AgentSettings(environment=("WANTED",))
    script = "env | sort; cmp - $OPSDRILL_TICKET_FILE && echo same; ls -A; ls -A ~ ~/.ssh"
    [came] = await grounds.drill(drill(sh(script), settings, hosts=["a-01", "b-01"], setup=[]))
    names = {line.partition("=")[0] for line in came.out.splitlines() if "=" in line}
    assert "WANTED=yes\n" in came.out and "UNWANTED" not in came.out
    assert "OPSDRILL_HOSTS=a-01 b-01\n" in came.out and "same\n" in came.out
    assert {f"OPSDRILL_{name}" for name in (
        "RUN", "HOSTS", "TICKET_FILE", "TICKET_URL", "TICKET_TOKEN", "SSH_CONFIG", "SSH_KEY"
    )} == {name for name in names if name.startswith("OPSDRILL_")}  # fmt: skip
    home = re.escape(next(line[5:] for line in came.out.splitlines() if line.startswith("HOME=")))
    listed = rf"same\n{home}:\n\.ssh\n\n{home}/\.ssh:\nconfig\nid_ed25519\nknown_hosts\n\Z"
    assert re.search(listed, came.out)


async def test_its_output_and_its_folder_are_kept_without_secrets(tmp_path: Path) -> None:
    mask = Mask([("DB_PASSWORD", "hunter2hunter2")])
    async with opened_range(tmp_path / "home", mask) as grounds:
        script = "echo pw hunter2hunter2; echo hunter2hunter2 | tee notes >&2;"
        script += "head -c 20M /dev/zero | tr '\\0' x; echo end"
        [came] = await grounds.drill(drill(sh(script)))
    assert came.out.startswith("pw [masked:DB_PASSWORD]\n") and came.out.endswith("end\n")
    assert "bytes left out]" in came.out and len(came.out) < 10 << 20
    assert came.err == (came.kept / "work" / "notes").read_text() == "[masked:DB_PASSWORD]\n"
    assert (
        came.kept.stat().st_mode & 0o777,
        (came.kept / "work/notes").stat().st_mode & 0o777,
    ) == (
        0o700,
        0o600,
    )


async def test_a_program_that_is_not_there_is_no_fault_of_the_agent(grounds: Range) -> None:
    run = drill("no-such-program --fast")
    await grounds.engine.submit([run])
    async for event in grounds.engine.subscribe([run.id]):
        if event.result is not None:
            assert event.result.verdict == "error"
            assert "no-such-program is not there" in event.result.reason


@pytest.mark.parametrize("limit", ["job", "budget"])
async def test_it_ends_at_its_limit_with_all_that_it_started(grounds: Range, limit: str) -> None:
    script = "ssh app-01 'sleep 300' & (setsid sleep 4712 &) ; opsdrill-ticket post hi; sleep 4712"
    settings = AgentSettings(budgets=Budgets(seconds=2)) if limit == "budget" else None
    limits = {"job_seconds": 2 if limit == "job" else 60}
    [came] = await grounds.drill(drill(sh(script), settings, limits=limits))
    job = came.record.job
    assert job is not None and job.status == "timed_out"
    assert came.record.stop is not None and came.record.stop.fault == "agent"
    assert came.calls[0].command == "sleep 300"
    left = [
        place
        for place in Path("/proc").glob("[0-9]*/cmdline")
        if place.exists() and b"4712" in place.read_bytes() and b"pytest" not in place.read_bytes()
    ]
    assert left == []


async def test_where_it_cannot_be_isolated_that_is_said_loudly(
    grounds: Range, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[W3.5] A warning, and `isolation: none` in the record; what it did is known in part."""

    async def refused() -> str:
        return "no namespaces here"

    monkeypatch.setattr("opsdrill.agents.command.job.why_not_isolated", refused)
    script = "ssh app-01 'echo good >/etc/app.conf'; opsdrill-ticket post hi; (setsid sleep 4714 &)"
    [came] = await grounds.drill(drill(sh(script)))
    assert came.record.isolation == "none"
    said = "the agent was not isolated from this machine: it may have seen the rules"
    assert said in came.result.warnings
    assert came.record.coverage.of("executed_commands").state == "partial"
    assert [call.command for call in came.calls] == ["echo good >/etc/app.conf"], came.err
    assert [message.body for message in came.record.ticket.messages] == ["hi"]
