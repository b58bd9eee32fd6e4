"""ATIF: trajectories of Harbor's agents, fact by fact."""

from __future__ import annotations

import json

import pytest
from pydantic import JsonValue
from tests.unit.evidence.importers.in_memory import (
    Row,
    calls_of,
    commands_of,
    golden,
    job_of,
    knows,
    state_of,
    status_of,
    task_of,
)

from opsdrill.errors import InvalidInput
from opsdrill.evidence.exporters.atif import atif
from opsdrill.model.job import JobRecord

FORMAT = "atif"
SAMPLES = [golden(FORMAT, name) for name in ("agents.json", "terminal.json")]
ASKED: Row = {"step_id": 1, "source": "user", "message": "Mend nginx."}
DONE: Row = {"step_id": 99, "source": "agent", "message": "Done."}


def use(name: str, id: str = "c1", /, **arguments: JsonValue) -> Row:
    return {"tool_call_id": id, "function_name": name, "arguments": arguments}


def acts(*calls: Row, results: list[JsonValue] | None = None, **more: JsonValue) -> Row:
    said: Row = {"step_id": 2, "source": "agent", "message": "I try.", "tool_calls": list(calls)}
    if results is not None:
        said["observation"] = {"results": results}
    return {**said, **more}


def back(id: str | None, content: JsonValue = "ok", **more: JsonValue) -> Row:
    return {"content": content, **({"source_call_id": id} if id else {}), **more}


def file(*steps: Row, **more: JsonValue) -> bytes:
    content: Row = {
        "schema_version": "ATIF-v1.7",
        "session_id": "s",
        "agent": {"name": "a", "version": "1"},
        "steps": [ASKED, *steps],
    }
    return json.dumps(content | more).encode()


def ran(name: str, /, **arguments: JsonValue) -> bytes:
    return file(acts(use(name, "c1", **arguments), results=[back("c1")]), DONE)


@pytest.mark.parametrize("version", ["ATIF-v1.5", "ATIF-v1.6", "ATIF-v1.7"])
def test_each_version_is_known(version: str) -> None:
    """`schema_version` names the format."""
    content = json.loads(ran("Bash", command="id")) | {"schema_version": version}
    assert commands_of(job_of(FORMAT, json.dumps(content).encode())) == ["id"]
    assert knows(FORMAT, json.dumps({"steps": content["steps"]}).encode())


@pytest.mark.parametrize(
    ("name", "arguments", "command"),
    [
        ("Bash", {"command": "id", "description": "d"}, "id"),
        ("bash_command", {"keystrokes": "ls -la\n", "duration": 0.1}, "ls -la"),
        ("bash_command", {"keystrokes": "ls -la\n\n"}, "ls -la\n"),
        ("bash_command", {"keystrokes": "y"}, "y"),
        ("execute_bash", {"command": " id ", "security_risk": "LOW"}, " id "),
        ("run_shell_command", {"command": "id"}, "id"),
        ("exec_command", {"cmd": "id"}, "id"),
        ("shell", {"command": ["bash", "-lc", "id | wc"]}, "id | wc"),
    ],
)
def test_shells(name: str, arguments: Row, command: str) -> None:
    """Each agent's shell; keystrokes lose the one key that enters them, and nothing else."""
    [call] = calls_of(job_of(FORMAT, ran(name, **arguments)))
    assert (call.kind, call.tool, call.command) == ("shell", name, command)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("bash_command", {"keystrokes": "", "duration": 5}),
        ("bash_command", {"keystrokes": "\n"}),
        ("bash_command", {"keystrokes": "C-c"}),
        ("execute_bash", {"command": ""}),
        ("execute_bash", {"command": "C-c", "is_input": "true"}),
        ("str_replace_editor", {"command": "view", "path": "/a"}),
        ("str_replace_editor", {"command": "create"}),
        ("Read", {"file_path": "/a"}),
        ("Bash", {}),
    ],
)
def test_what_is_no_command(name: str, arguments: Row) -> None:
    """Waiting, keys, what is typed into a running program, reading: none runs a command."""
    [call] = calls_of(job_of(FORMAT, ran(name, **arguments)))
    assert (call.kind, call.tool) == ("other", name)


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "path"),
    [
        ("Write", {"file_path": "/a", "content": ""}, "write_file", "/a"),
        ("Edit", {"file_path": "/a"}, "update_file", "/a"),
        ("MultiEdit", {"file_path": "/a", "edits": []}, "update_file", "/a"),
        ("NotebookEdit", {"notebook_path": "/n"}, "update_file", "/n"),
        ("str_replace_editor", {"command": "create", "path": "/a"}, "write_file", "/a"),
        ("str_replace_editor", {"command": "str_replace", "path": "/a"}, "update_file", "/a"),
        ("str_replace_editor", {"command": "insert", "path": "/a"}, "update_file", "/a"),
        ("write", {"filePath": "/a", "content": ""}, "write_file", "/a"),
    ],
)
def test_edits(name: str, arguments: Row, kind: str, path: str) -> None:
    """Edits: Write and Edit have a file_path; the editor's `command` is no shell command."""
    job = job_of(FORMAT, ran(name, **arguments))
    [call] = calls_of(job)
    assert (call.kind, call.path) == (kind, path)
    assert commands_of(job) == []


def test_a_patch_is_a_call_for_each_file() -> None:
    """A tool that changes several files at once."""
    patch = "*** Begin Patch\n*** Add File: /a\n+x\n*** Update File: /b\n-y\n*** End Patch"
    job = job_of(FORMAT, ran("apply_patch", input=patch))
    assert [(call.id, call.kind, call.path, call.outcome) for call in calls_of(job)] == [
        ("c1/1", "write_file", "/a", "ran"),
        ("c1/2", "update_file", "/b", "ran"),
    ]


def test_mcp_tools_name_their_server() -> None:
    """mcp__SERVER__TOOL, as Claude Code names them."""
    [call] = calls_of(job_of(FORMAT, ran("mcp__my_db__run_query", sql="x")))
    assert (call.kind, call.server, call.tool) == ("mcp", "my_db", "run_query")


def test_copied_steps_are_repeats() -> None:
    """`is_copied_context: true` steps are skipped; what came before is told to be missing."""
    copied = acts(use("Bash", command="rm /"), results=[back("c1")], is_copied_context=True)
    job = job_of(FORMAT, file(copied, acts(use("Bash", command="id"), results=[back("c1")]), DONE))
    assert commands_of(job) == ["id"]
    assert [message.text for message in task_of(job).messages] == ["I try.", "Done."]
    assert state_of(job, "executed_commands") == "partial"


def test_commands_inside_of_words_are_a_gap() -> None:
    """Files with a linear history have no tool_calls: the commands stand in the message's JSON."""
    words = json.dumps({"commands": [{"keystrokes": "id\n"}], "task_complete": False})
    step: Row = {"step_id": 2, "source": "agent", "message": words}
    seen: Row = {"observation": {"results": [{"content": "root"}]}}
    for one in (step, step | seen):
        job = job_of(FORMAT, file(one, DONE))
        assert calls_of(job) == []
        for target in ("executed_commands", "tool_calls", "write_file"):
            assert state_of(job, target) == "partial"
        assert state_of(job, "agent_messages") == "whole"
    assert status_of(job_of(FORMAT, file(step))) == "failed"
    over = json.dumps({"commands": [], "task_complete": True})
    assert status_of(job_of(FORMAT, file({"step_id": 2, "source": "agent", "message": over}))) == (
        "completed"
    )


def test_tool_calls_can_be_null() -> None:
    """`tool_calls` can be null: an answer without calls."""
    job = job_of(FORMAT, file(DONE | {"tool_calls": None, "observation": None}))
    assert status_of(job) == "completed"


def test_results_without_an_id_belong_to_the_steps_calls() -> None:
    """`source_call_id` can be missing: one by one, or one screen for all that was typed."""
    calls = (use("Bash", "c1", command="a"), use("Bash", "c2", command="b"))
    each = job_of(FORMAT, file(acts(*calls, results=[back(None, "1"), back(None, "2")]), DONE))
    assert [call.output for call in calls_of(each)] == ["1", "2"]
    mixed = job_of(FORMAT, file(acts(*calls, results=[back("c2", "2"), back(None, "1")]), DONE))
    assert [call.output for call in calls_of(mixed)] == ["1", "2"]
    screen = job_of(FORMAT, file(acts(*calls, results=[back(None, "all")]), DONE))
    assert [(call.output, call.outcome) for call in calls_of(screen)] == [
        (None, "ran"),
        ("all", "ran"),
    ]
    assert state_of(screen, "executed_commands") == "whole"


def test_a_call_without_a_result_may_not_have_run() -> None:
    """Without any observation nobody knows; with a strange id another call's is missing."""
    job = job_of(FORMAT, file(acts(use("Bash", command="id")), DONE))
    assert state_of(job, "executed_commands") == "partial"
    strange = file(acts(use("Bash", command="id"), results=[back("c1"), back("c9")]), DONE)
    assert state_of(job_of(FORMAT, strange), "executed_commands") == "partial"


def test_a_call_told_twice_counts_once() -> None:
    """Some converters repeat the call in the step that holds its result."""
    call = use("execute_bash", command="id")
    job = job_of(FORMAT, file(acts(call), acts(call, results=[back("c1", "root")]), DONE))
    assert [(one.command, one.output) for one in calls_of(job)] == [("id", "root")]
    again = acts(call, results=[back("c1")])
    assert len(calls_of(job_of(FORMAT, file(again, again, DONE)))) == 2


def test_exit_codes_stand_in_the_results_text() -> None:
    """Where an agent's results have them; what is printed never makes a command refused."""

    def told(text: str) -> tuple[str, int | None]:
        step = acts(use("Bash", command="x"), results=[back("c1", text)])
        [call] = calls_of(job_of(FORMAT, file(step, DONE)))
        return call.outcome, call.exit_code

    assert told("Exit code 3\nno") == ("ran", 3)
    assert told("no\n\n[exit_code] 4\n[error] tool reported failure") == ("ran", 4)
    assert told("<returncode>1</returncode>\n<output>\n</output>") == ("ran", 1)
    assert told("x\n[The command completed with exit code 2.]") == ("ran", 2)
    assert told("Command timed out after 2m") == ("timed_out", None)
    assert told("The user doesn't want to proceed with this tool use.") == ("ran", None)
    assert told("ok") == ("ran", None)
    step = acts(
        use("Edit", file_path="/a"), results=[back("c1", "x [error] tool reported failure")]
    )
    assert calls_of(job_of(FORMAT, file(step, DONE)))[0].outcome == "failed"


def test_times_are_optional() -> None:
    """`timestamp` is optional; without any the times are unavailable."""
    assert state_of(job_of(FORMAT, ran("Bash", command="id")), "times") == "unavailable"
    timed = job_of(FORMAT, file(DONE | {"timestamp": "2026-01-01T00:00:00Z"}))
    assert state_of(timed, "times") == "whole"
    assert state_of(job_of(FORMAT, file(DONE | {"timestamp": "soon"})), "times") == "unavailable"


def test_an_embedded_agent_is_a_task_of_its_own() -> None:
    """A called agent's steps in `subagent_trajectories`, at any depth; its prompt describes it."""
    inner: Row = {"agent": {"name": "deep"}, "steps": [ASKED | {"message": "Deeper."}, DONE]}
    sub: Row = {
        "trajectory_id": "t",
        "agent": {"name": "sub"},
        "steps": [
            ASKED | {"message": "Look."},
            acts(use("Bash", command="tail"), results=[back("c1")]),
            DONE,
        ],
        "subagent_trajectories": [inner],
    }
    call = use("Agent", prompt="Look.")
    step = acts(call, results=[back("c1", subagent_trajectory_ref={"trajectory_id": "t"})])
    job = job_of(FORMAT, file(step, DONE, subagent_trajectories=[sub]))
    assert [(task.id, task.agent, task.description) for task in job.record.tasks] == [
        ("main", None, "Mend nginx."),
        ("agent-1", "sub", "Look."),
        ("agent-2", "deep", "Deeper."),
    ]
    assert [call.command for call in task_of(job, "agent-1").tool_calls] == ["tail"]
    assert state_of(job, "executed_commands") == "whole"


def test_an_agent_in_another_file_is_a_gap() -> None:
    """Nobody knows what an agent did whose steps are not there."""
    elsewhere: Row = {"session_id": "x", "trajectory_path": "trajectory.sub.json"}
    system: Row = {
        "step_id": 2,
        "source": "system",
        "observation": {"results": [{"subagent_trajectory_ref": [elsewhere]}]},
    }
    steps = [
        acts(use("Agent", prompt="Look."), results=[back("c1")]),
        acts(use("odd"), results=[back("c1", subagent_trajectory_ref=[elsewhere])]),
        system,
    ]
    for step in steps:
        job = job_of(FORMAT, file(step, DONE))
        assert state_of(job, "executed_commands") == state_of(job, "tasks") == "partial"


def test_a_sidechain_is_an_agent_of_its_own() -> None:
    """Steps that Claude Code marks as another agent's stand among the main ones."""
    side: Row = {"extra": {"is_sidechain": True, "agent_id": "7"}}
    job = job_of(
        FORMAT,
        file(
            acts(use("Agent", prompt="Look."), results=[back("c1")]),
            ASKED | {"message": "Look."} | side,
            acts(use("Bash", "c2", command="tail"), results=[back("c2")]) | side,
            DONE,
        ),
    )
    assert [task.description for task in job.record.tasks] == ["Mend nginx.", "Look."]
    assert [call.command for call in task_of(job, "agent 7").tool_calls] == ["tail"]
    assert state_of(job, "executed_commands") == "whole"


def test_a_trajectory_that_goes_on_elsewhere_has_no_end() -> None:
    """`continued_trajectory_ref` names another file, which is not read."""
    job = job_of(FORMAT, file(DONE, continued_trajectory_ref="trajectory.cont-1.json"))
    assert status_of(job) == "failed"
    assert state_of(job, "executed_commands") == "partial"
    assert any("goes on in another file" in warning for warning in job.warnings)
    later = job_of(FORMAT, file(DONE, agent={"name": "a", "extra": {"continuation_index": 1}}))
    assert (status_of(later), state_of(later, "tasks")) == ("completed", "partial")


@pytest.mark.parametrize("name", ["finish", "mark_task_complete"])
def test_an_agent_may_say_by_a_tool_that_it_is_done(name: str) -> None:
    """Its last words are what it gives to the tool."""
    step = acts(use(name, message="All is well."))
    job = job_of(FORMAT, file(step))
    assert (status_of(job), task_of(job).stop_reason) == ("completed", name)
    assert task_of(job).summary == "All is well."
    assert state_of(job, "tool_calls") == "whole"


def test_a_call_or_a_question_is_no_end() -> None:
    """The last thing must be an answer of the agent."""
    call = acts(use("Bash", command="id"), results=[back("c1")])
    assert status_of(job_of(FORMAT, file(DONE, call))) == "failed"
    assert status_of(job_of(FORMAT, file(DONE, ASKED))) == "failed"


def test_messages_and_what_was_asked() -> None:
    """The first request is the ticket, others are messages on it; system steps are neither."""
    system: Row = {"step_id": 2, "source": "system", "message": "You mend."}
    part: JsonValue = [{"type": "text", "text": "And cron."}, {"type": "image", "source": {}}]
    job = job_of(FORMAT, file(system, DONE, ASKED | {"message": part}, DONE))
    assert job.record.ticket.body == task_of(job).description == "Mend nginx."
    assert [message.body for message in job.record.ticket.messages] == ["And cron."]
    assert len(task_of(job).messages) == 2


def test_usage_is_the_steps_or_the_whole_ones() -> None:
    """Metrics of each step; what only `final_metrics` has is taken from there."""
    total: JsonValue = {"total_prompt_tokens": 90, "total_cost_usd": 0.5}
    metered = DONE | {"metrics": {"prompt_tokens": 7, "completion_tokens": 2}}
    usage = task_of(job_of(FORMAT, file(metered, metered, final_metrics=total))).usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cost_usd) == (14, 4, 0.5)
    usage = task_of(job_of(FORMAT, file(DONE, final_metrics=total))).usage
    assert usage is not None and usage.input_tokens == 90


def test_what_opsdrill_exports_comes_back() -> None:
    """A record that was written as ATIF is read with the same calls, hosts and outcomes."""
    made = {
        "format": "opsdrill.job/1",
        "job": {"id": "j", "status": "completed", "resolution": "success"},
        "ticket": {"body": "Mend nginx."},
        "coverage": {"default": {"state": "whole"}},
        "tasks": [
            {
                "id": "t1",
                "host": "web-01",
                "status": "completed",
                "messages": [{"text": "Done."}],
                "tool_calls": [
                    {
                        "id": "a",
                        "kind": "shell",
                        "tool": "run",
                        "arguments": {"command": "id"},
                        "outcome": "refused",
                    },
                    {
                        "id": "b",
                        "kind": "mcp",
                        "server": "db",
                        "tool": "query",
                        "arguments": {"sql": "x"},
                        "outcome": "failed",
                        "output": "no",
                    },
                ],
            },
            {
                "id": "t2",
                "host": "db-01",
                "status": "completed",
                "tool_calls": [
                    {
                        "id": "a",
                        "kind": "shell",
                        "arguments": {"command": "df"},
                        "outcome": "ran",
                        "exit_code": 2,
                        "output": "full",
                    }
                ],
            },
        ],
    }
    record = JobRecord.model_validate(made)
    data = json.dumps(atif(record, session="s", agent="x", version="1")).encode()
    found = [
        (task.host, call.kind, call.server, call.arguments, call.outcome, call.exit_code)
        for task in job_of(FORMAT, data).record.tasks
        for call in task.tool_calls
    ]
    assert sorted(found, key=str) == sorted(
        [
            ("web-01", "shell", None, {"command": "id"}, "refused", None),
            ("web-01", "mcp", "db", {"sql": "x"}, "failed", None),
            ("db-01", "shell", None, {"command": "df"}, "ran", 2),
        ],
        key=str,
    )


def test_what_is_no_trajectory_is_refused() -> None:
    """Other files are not known; without steps there is nothing to read."""
    for data in (b"", b"{}", b"[]", b'{"steps": []}', b'{"schema_version": "ATIF-v1.7"}'):
        assert not knows(FORMAT, data)
    with pytest.raises(InvalidInput):
        job_of(FORMAT, b'{"schema_version": "x"}')
