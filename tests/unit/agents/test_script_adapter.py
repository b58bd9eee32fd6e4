"""The script adapter: what it does with a script."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from pathlib import Path

import pytest

from opsdrill.agents.adapter import AdapterContext, Assignment
from opsdrill.agents.adapters.script import ScriptAdapter
from opsdrill.errors import InvalidInput, UsageError
from opsdrill.evidence.recorder import Recorder
from opsdrill.hosts.drivers.fake import FakeHost
from opsdrill.hosts.drivers.fake_script import FakeAnswer, FakeScript, Scripted
from opsdrill.model.event import JobEvent
from opsdrill.model.job import JobRecord, ToolCall
from opsdrill.model.ticket import Ticket

TICKET = Ticket(title="T", body="B")
FINE = FakeScript(otherwise=Scripted(exit_code=0))


class Nowhere:
    def append(self, seq: int, event: JobEvent) -> None:
        """Keep nothing."""


class Play:
    """A script played on fake hosts."""

    def __init__(self, folder: Path, text: str, answers: FakeScript = FINE) -> None:
        (folder / "agent.yaml").write_text(f"format: opsdrill.script/1\n{text}")
        self.adapter = ScriptAdapter(AdapterContext(argument="agent.yaml", folder=folder))
        self.hosts = {name: FakeHost(name, answers) for name in ("web-01", "db-01")}
        self.recorder = Recorder(Nowhere(), TICKET)

    async def record(self) -> JobRecord:
        await self.adapter.preflight(tuple(self.hosts))
        await self.adapter.work(
            Assignment(TICKET, self.hosts, ("Rule one.",), 100.0, 5.0), self.recorder
        )
        return self.recorder.job_record()


async def calls(folder: Path, *items: str, answers: FakeScript = FINE) -> list[ToolCall]:
    play = Play(
        folder, f"turns: [{{tasks: [{{host: web-01, do: [{', '.join(items)}]}}]}}]", answers
    )
    return list((await play.record()).tasks[0].tool_calls)


async def test_the_record_holds_what_the_script_says(tmp_path: Path) -> None:
    """[P3, P4, P5]"""
    record = await Play(
        tmp_path,
        """
plan: Mend it.
turns:
  - post: One.
    tasks:
      - host: web-01
        agent: fixer
        description: Look.
        operational_rules: [Rule two.]
        do: [{say: Hello.}]
        end: {status: failed, stop_reason: gave up, summary: Too hard.}
  - post: Two.
    tasks: [{host: db-01}]
post: Three.
resolve: {resolution: partial, reasoning: Half of it.}
""",
    ).record()
    assert record.job is not None
    assert (record.job.status, record.job.resolution) == ("completed", "partial")
    assert (record.job.plan, record.job.resolution_reasoning) == ("Mend it.", "Half of it.")
    assert [(m.author, m.body) for m in record.ticket.messages] == [
        ("agent", "One."),
        ("agent", "Two."),
        ("agent", "Three."),
    ]
    first, second = record.tasks
    assert (first.id, first.turn, first.host, first.agent) == ("t1", 1, "web-01", "fixer")
    assert (first.description, first.operational_rules) == ("Look.", ("Rule one.", "Rule two."))
    assert (first.status, first.stop_reason, first.summary) == ("failed", "gave up", "Too hard.")
    assert [message.text for message in first.messages] == ["Hello."]
    assert (second.id, second.turn, second.host, second.status) == ("t2", 2, "db-01", "completed")
    assert second.operational_rules == ("Rule one.",)
    assert record.coverage.default.state == "whole"


async def test_tasks_of_a_turn_run_at_the_same_time_and_turns_after_each_other(
    tmp_path: Path,
) -> None:
    """[P3] The tasks of a turn start together; the next turn starts when all ended."""
    record = await Play(
        tmp_path,
        """
turns:
  - tasks:
      - {host: web-01, do: [{sleep: 0.03}]}
      - {host: db-01}
  - tasks: [{host: web-01}]
""",
    ).record()
    one, two, three = record.tasks
    for task in record.tasks:
        assert task.started_at and task.ended_at
    assert one.started_at and two.started_at and one.ended_at and two.ended_at and three.started_at
    assert max(one.started_at, two.started_at) < min(one.ended_at, two.ended_at)
    assert one.ended_at - two.ended_at > timedelta(milliseconds=10), "each ends on its own"
    assert three.started_at >= max(one.ended_at, two.ended_at)
    assert [task.turn for task in record.tasks] == [1, 1, 2]


async def test_tasks_of_a_turn_can_wait_for_each_other(tmp_path: Path) -> None:
    """[P3] Commands of one turn overlap: each host answers only once the other was asked."""
    play = Play(
        tmp_path,
        "turns: [{tasks: [{host: web-01, do: [{run: a}]}, {host: db-01, do: [{run: b}]}]}]",
        FakeScript(otherwise=Scripted(exit_code=0, delay=4)),
    )
    working = asyncio.create_task(play.record())
    while sum(host.running for host in play.hosts.values()) < 2:
        assert not working.done()
        await asyncio.sleep(0.001)
    for host in play.hosts.values():
        host.end()
    assert len((await working).tasks) == 2


async def test_commands_really_run_and_their_answers_are_kept(tmp_path: Path) -> None:
    """[P8, P14]"""
    answers = FakeScript(
        answers=(
            FakeAnswer(run="a", exit_code=3, stdout="out\n", stderr="err\n"),
            FakeAnswer(run="b", timed_out=True),
            FakeAnswer(run="c", dropped=True),
        )
    )
    items = ("{run: a}", "{run: b}", "{run: c}", "{run: d}")
    got = await calls(tmp_path, *items, answers=answers)
    assert [(call.outcome, call.exit_code) for call in got] == [
        ("ran", 3),
        ("timed_out", None),
        ("failed", None),
        ("ran", 127),
    ]
    assert got[0].output == "out\nerr"
    assert [call.command for call in got] == ["a", "b", "c", "d"]


async def test_a_host_that_does_not_answer_ends_its_task_and_no_other(tmp_path: Path) -> None:
    """[P12]"""
    play = Play(
        tmp_path,
        """
turns:
  - tasks:
      - {host: web-01, do: [{run: a}, {run: never}], end: {summary: All is well.}}
      - {host: db-01, do: [{run: b}]}
  - tasks: [{host: db-01, do: [{run: c}]}]
resolve: {resolution: success}
""",
        FakeScript(silent=("web-01",), otherwise=Scripted(exit_code=0)),
    )
    record = await play.record()
    assert [task.status for task in record.tasks] == ["failed", "completed", "completed"]
    assert record.tasks[0].stop_reason == "the host does not answer"
    assert record.tasks[0].summary != "All is well."
    assert [call.command for call in record.tasks[0].tool_calls] == ["a"]


async def test_files_are_written_and_edited(tmp_path: Path) -> None:
    """[P9]"""
    play = Play(
        tmp_path,
        """
turns:
  - tasks:
      - host: web-01
        do:
          - {write: {path: /etc/a, content: "port 80\\nname 80x\\n", mode: "0600"}}
          - {update: {path: /etc/a, old: "80\\n", new: "8080\\n"}}
""",
    )
    record = await play.record()
    assert play.hosts["web-01"].files["/etc/a"].content == b"port 8080\nname 80x\n"
    assert play.hosts["web-01"].files["/etc/a"].mode == 0o600, "an edit keeps the mode"
    write, update = record.tasks[0].tool_calls
    assert (write.kind, write.tool, write.path, write.outcome) == (
        "write_file", "write_file", "/etc/a", "ran",
    )  # fmt: skip
    assert (update.kind, update.path, update.outcome) == ("update_file", "/etc/a", "ran")
    assert update.arguments == {"path": "/etc/a", "old": "80\n", "new": "8080\n"}


@pytest.mark.parametrize(
    ("content", "old", "said"),
    [
        (None, "a", "there is no file /f"),
        ("bcd", "a", "the text to replace does not occur in /f"),
        ("aba", "a", "the text to replace occurs more than once in /f"),
        ("aaa", "aa", "the text to replace occurs more than once in /f"),
    ],
)
async def test_an_edit_whose_old_text_is_not_there_exactly_once_fails(
    tmp_path: Path, content: str | None, old: str, said: str
) -> None:
    """[P10]"""
    files = {} if content is None else {"web-01": {"/f": content}}
    item = f"{{update: {{path: /f, old: {old}, new: n}}}}"
    play = Play(
        tmp_path,
        f"turns: [{{tasks: [{{host: web-01, do: [{item}]}}]}}]",
        FakeScript(files=files),
    )
    before = dict(play.hosts["web-01"].files)
    (call,) = (await play.record()).tasks[0].tool_calls
    assert (call.outcome, call.output) == ("failed", said)
    assert play.hosts["web-01"].files == before


async def test_an_edit_never_cuts_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opsdrill.agents.task.EDIT_LIMIT", 4)
    answers = FakeScript(files={"web-01": {"/f": "abcde"}})
    (call,) = await calls(tmp_path, "{update: {path: /f, old: a, new: b}}", answers=answers)
    assert (call.outcome, call.output) == ("failed", "/f has more than 4 bytes")


async def test_a_file_that_cannot_be_written_is_a_failed_call(tmp_path: Path) -> None:
    """[P10]"""
    answers = FakeScript(files={"web-01": {"/etc/x": ""}}, otherwise=Scripted(exit_code=0))
    write, run = await calls(
        tmp_path, "{write: {path: /etc, content: x}}", "{run: a}", answers=answers
    )
    assert (write.outcome, run.outcome) == ("failed", "ran")
    assert write.output and "folder" in write.output


async def test_an_edit_keeps_mode_and_owner(tmp_path: Path) -> None:
    """[P9]"""
    play = Play(
        tmp_path,
        """
turns:
  - tasks:
      - host: web-01
        do: [{update: {path: /f, old: a, new: b}}, {write: {path: /g, content: b}}]
""",
    )
    for path in ("/f", "/g"):
        await play.hosts["web-01"].put(path, b"a", mode=0o750, owner="app")
    await play.record()
    for path in ("/f", "/g"):
        file = play.hosts["web-01"].files[path]
        assert (file.content, file.mode, file.owner) == (b"b", 0o750, "app")


@pytest.mark.parametrize(
    "item", ["{write: {path: /f, content: a}}", "{update: {path: /f, old: a, new: b}}"]
)
async def test_a_file_on_a_host_that_does_not_answer_ends_the_task(
    tmp_path: Path, item: str
) -> None:
    """[P12]"""
    play = Play(
        tmp_path,
        f"turns: [{{tasks: [{{host: web-01, do: [{item}, {{run: never}}]}}]}}]",
        FakeScript(silent=("web-01",)),
    )
    (task,) = (await play.record()).tasks
    assert (task.status, task.stop_reason) == ("failed", "the host does not answer")
    assert [call.outcome for call in task.tool_calls] == ["failed"]


async def test_claims_and_mcp_calls_touch_no_host(tmp_path: Path) -> None:
    """[P11]"""
    play = Play(
        tmp_path,
        """
turns:
  - tasks:
      - host: web-01
        do:
          - {claim: reboot}
          - {mcp: {server: s, tool: t, arguments: {b: 1, a: é}}}
          - {mcp: {server: s, tool: t, refuse: true}}
""",
    )
    claim, mcp, refused = (await play.record()).tasks[0].tool_calls
    assert (claim.kind, claim.command, claim.outcome) == ("shell", "reboot", "claimed")
    assert (mcp.kind, mcp.server, mcp.tool, mcp.outcome) == ("mcp", "s", "t", "ran")
    assert list(mcp.arguments.items()) == [("b", 1), ("a", "é")]  # type: ignore[union-attr]
    assert (refused.arguments, refused.outcome) == (None, "refused")
    assert play.hosts["web-01"].asked == []


async def test_without_resolve_the_job_ends_without_a_resolution(tmp_path: Path) -> None:
    """[P6]"""
    record = await Play(tmp_path, "turns: []").record()
    assert record.job is not None
    assert (record.job.status, record.job.resolution, record.tasks) == ("completed", None, ())


async def test_a_ticket_may_never_become_a_job(tmp_path: Path) -> None:
    """[P7]"""
    record = await Play(tmp_path, "no_job: Nobody is on duty.").record()
    assert (record.job, record.no_job_reason) == (None, "Nobody is on duty.")


async def test_a_crash_of_a_host_driver_ends_every_task(tmp_path: Path) -> None:
    play = Play(
        tmp_path,
        "turns: [{tasks: [{host: web-01, do: [{run: a}]}, {host: db-01, do: [{sleep: 60}]}]}]",
    )
    play.hosts["web-01"] = Broken("web-01")
    with pytest.raises(RuntimeError, match="no more"):
        await play.record()
    first, second = play.recorder.job_record().tasks
    assert (first.status, second.status) == ("failed", "cancelled")
    assert first.summary == "RuntimeError: no more"


class Broken(FakeHost):
    async def run(self, command: object) -> None:  # type: ignore[override]
        raise RuntimeError("no more")


async def test_an_unknown_host_is_refused_with_its_path(tmp_path: Path) -> None:
    """[P2]"""
    play = Play(tmp_path, "turns: [{tasks: [{host: web-01}, {host: mail-01}]}]")
    said = "turns[0].tasks[1].host 'mail-01' is no host of the scenario; its hosts: web-01, db-01"
    with pytest.raises(InvalidInput, match=re.escape(said)) as caught:
        await play.adapter.preflight(("web-01", "db-01"))
    assert (caught.value.problems[0].line, caught.value.problems[0].column) == (2, 41)
    with pytest.raises(InvalidInput, match="it has no hosts"):
        await play.adapter.preflight(())


def test_the_file_is_looked_for_in_the_working_folder_then_the_scenarios(tmp_path: Path) -> None:
    """[P1] One name serves a whole matrix."""
    work, scenario = tmp_path / "work", tmp_path / "scenario"
    for folder in (work, scenario):
        folder.mkdir()
    context = AdapterContext("agent.yaml", work, scenario)
    with pytest.raises(UsageError, match=r"no script 'agent\.yaml'") as caught:
        ScriptAdapter(context)
    assert caught.value.hint and str(scenario) in caught.value.hint
    (scenario / "agent.yaml").write_text("format: opsdrill.script/1\nno_job: scenario\n")
    assert ScriptAdapter(context).path == scenario / "agent.yaml"
    (work / "agent.yaml").write_text("format: opsdrill.script/1\nno_job: work\n")
    assert ScriptAdapter(context).path == work / "agent.yaml"
    absolute = AdapterContext(str(scenario / "agent.yaml"), work)
    assert ScriptAdapter(absolute).path == scenario / "agent.yaml"


@pytest.mark.parametrize("argument", [None, ""])
def test_a_file_must_be_named(argument: str | None) -> None:
    with pytest.raises(UsageError, match="needs a file"):
        ScriptAdapter(AdapterContext(argument))
