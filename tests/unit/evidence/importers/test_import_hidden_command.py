"""A command does not hide in a tool that is not known: `executed_commands` is partial then, in
every format. `docs/reference/transcripts.md`, "Strange tools"."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue
from tests.unit.evidence.importers.in_memory import lines, read

from opsdrill.evidence.transcripts.hidden_command import hides_command
from opsdrill.evidence.transcripts.imported import Placing
from opsdrill.evidence.transcripts.transcript import Transcript
from opsdrill.model.job import Outcome, Seen, ToolKind


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Monitor", {"command": "tail -f /var/log/syslog"}),
        ("node_task", {"cmd": ["rm", "-rf", "/srv"]}),
        ("node_task", {"options": {"steps": [{"script": "rm -rf /srv"}]}}),
        ("run_on", {"shellCommand": "ls"}),
        ("run_on", {"bash-command": "ls"}),
        ("write_stdin", {"session_id": 1, "chars": "rm -rf /srv\n"}),
        ("write_bash", {"sessionId": "a", "input": "reboot{enter}"}),
        ("run", {"command": "rm -rf /srv", "is_input": "true"}),
        ("create", {"command": "create now"}),
        ("python", {"code": "import os\nos.system('reboot')"}),
        ("run_ipython", {"code": "!rm -rf /srv"}),
        ("run_ipython", {"code": "x = 1\n%%bash\nrm -rf /srv"}),
        ("node", {"code": "require('child_process').execSync('reboot')"}),
    ],
)
def test_what_may_have_run_a_command(tool: str, arguments: JsonValue) -> None:
    """A command among what a strange tool was given, however deep, or typed into a program."""
    assert hides_command(tool, arguments)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Read", {"file_path": "/etc/hosts"}),
        ("Grep", {"pattern": "command", "path": "/srv"}),
        ("str_replace_editor", {"command": "view", "path": "/srv/a"}),
        ("memory", {"command": "rename", "old_path": "a"}),
        ("SlashCommand", {"command": "/review"}),
        ("Skill", {"command": "pdf"}),
        ("node_task", {"command": ""}),
        ("node_task", {"command": None, "cmd": []}),
        ("restart_service", {"name": "nginx"}),
        ("python", {"code": "print(1 != 2)"}),
        ("lookup", {"source": "wiki"}),
        ("write_stdin", {"session_id": 1, "chars": ""}),
        ("write_stdin", {"session_id": 1, "chars": "\x03"}),
        ("write_stdin", {"session_id": 1, "chars": "y\n"}),
        ("write_bash", {"input": "{down}{enter}"}),
        ("run", {"command": "C-c", "is_input": True}),
        (None, None),
    ],
)
def test_what_ran_none(tool: str | None, arguments: JsonValue) -> None:
    """Reading, editing, polling, keys and one-letter answers are no commands."""
    assert not hides_command(tool, arguments)


@given(st.recursive(st.none() | st.text(), lambda b: st.lists(b) | st.dictionaries(st.text(), b)))
def test_anything_can_be_asked(arguments: JsonValue) -> None:
    """No arguments make it fail."""
    assert hides_command("any", arguments) in (True, False)


@pytest.mark.parametrize("text", [" \n" * 500_000 + "x", "{a" * 500_000, "C-" * 500_000])
def test_long_texts_take_no_long_time(text: str) -> None:
    """Neither white space nor half written keys make the search grow faster than the text."""
    assert hides_command("write_stdin", {"chars": text}) or text.strip() == "x"
    assert not hides_command("python", {"code": text})


def seen(target: str, kind: ToolKind, arguments: JsonValue, outcome: Outcome = "ran") -> Seen:
    told = Transcript("codex", "Codex", Placing(host="web-01"))
    id = told.main.call(None, kind, "node_task", arguments, server="ops")
    told.main.returned(id, outcome=outcome)
    told.end()
    return told.imported().record.coverage.of(target)


@pytest.mark.parametrize("kind", ["other", "mcp"])
def test_the_commands_are_not_known_to_be_whole(kind: ToolKind) -> None:
    """The reason names the tool; calls are whole, since the call is among them."""
    found = seen("executed_commands", kind, {"command": "rm -rf /srv"})
    assert found.state == "partial"
    assert found.why is not None and "`node_task`" in found.why
    assert seen("tool_calls", kind, {"command": "rm -rf /srv"}).state == "whole"
    assert seen("use_mcp_tool", kind, {"command": "rm -rf /srv"}).state == "whole"


@pytest.mark.parametrize("outcome", ["failed", "timed_out"])
def test_a_call_that_failed_may_have_run_it(outcome: Outcome) -> None:
    """Many tools give an error where their command gave one; only what was refused ran nothing."""
    assert seen("executed_commands", "mcp", {"cmd": "ls"}, outcome).state == "partial"
    assert seen("executed_commands", "mcp", {"cmd": "ls"}, "refused").state == "whole"


def test_a_tool_of_which_nobody_knows_what_it_was_given() -> None:
    """Where the arguments are not there, the calls are not whole either; none at all are `{}`."""
    for target in ("executed_commands", "tool_calls", "use_mcp_tool"):
        assert seen(target, "mcp", None).state == "partial"
        assert seen(target, "mcp", {}).state == "whole"
    assert seen("use_mcp_tool", "other", None).state == "whole"


def claude(tool: str) -> bytes:
    use: JsonValue = {"type": "tool_use", "id": "t", "name": tool, "input": {"command": "reboot"}}
    back: JsonValue = {"type": "tool_result", "tool_use_id": "t", "content": "ok"}
    said: JsonValue = {"type": "text", "text": "Done."}
    return lines(
        {"type": "user", "sessionId": "s", "message": {"role": "user", "content": "Mend it."}},
        {"type": "assistant", "sessionId": "s", "message": {"id": "m", "content": [use]}},
        {"type": "user", "sessionId": "s", "message": {"content": [back]}},
        {"type": "assistant", "sessionId": "s", "message": {"id": "n", "content": [said]}},
    )


def opencode(tool: str) -> bytes:
    state: JsonValue = {"status": "completed", "input": {"command": "reboot"}, "output": "ok"}
    part: JsonValue = {"id": "p", "type": "tool", "tool": tool, "callID": "c", "state": state}
    about: JsonValue = {"id": "m", "role": "assistant", "finish": "stop"}
    message: JsonValue = {"info": about, "parts": [part]}
    return json.dumps({"info": {"id": "s", "directory": "/"}, "messages": [message]}).encode()


def codex(tool: str) -> bytes:
    call: JsonValue = {
        "type": "function_call", "call_id": "c", "name": tool,
        "arguments": json.dumps({"command": "reboot"}),
    }  # fmt: skip
    back: JsonValue = {"type": "function_call_output", "call_id": "c", "output": "ok"}
    said: JsonValue = {"type": "task_complete", "last_agent_message": "Done."}
    return lines(
        {"type": "response_item", "payload": call},
        {"type": "response_item", "payload": back},
        {"type": "event_msg", "payload": said},
    )


def gemini(tool: str) -> bytes:
    call: JsonValue = {"id": "c", "name": tool, "args": {"command": "reboot"}, "status": "success"}
    return lines(
        {"sessionId": "s", "projectHash": "h"},
        {"id": "g", "type": "gemini", "content": "", "toolCalls": [call]},
        {"id": "e", "type": "gemini", "content": "Done."},
    )


def atif(tool: str) -> bytes:
    call: JsonValue = {
        "tool_call_id": "c", "function_name": tool, "arguments": {"command": "reboot"}
    }  # fmt: skip
    back: JsonValue = {"results": [{"source_call_id": "c", "content": "ok"}]}
    step: JsonValue = {
        "step_id": 1, "source": "agent", "message": "", "tool_calls": [call], "observation": back
    }  # fmt: skip
    last: JsonValue = {"step_id": 2, "source": "agent", "message": "Done."}
    steps: JsonValue = [step, last]
    agent: JsonValue = {"name": "a", "version": "1"}
    whole: JsonValue = {"schema_version": "ATIF-v1.6", "session_id": "s", "agent": agent}
    return json.dumps({**whole, "steps": steps}).encode()  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("format", "data"),
    [
        ("claude-code", claude("Monitor")),
        ("claude-code", claude("mcp__ops__node_task")),
        ("opencode", opencode("nodetask")),
        ("opencode", opencode("ops_task")),
        ("codex", codex("node_task")),
        ("codex", codex("mcp__ops__node_task")),
        ("gemini-cli", gemini("node_task")),
        ("gemini-cli", gemini("mcp_ops_task")),
        ("atif", atif("node_task")),
    ],
)
def test_no_format_passes_over_it(format: str, data: bytes) -> None:
    """The call is there, it is no shell command, and the commands are not whole."""
    [job] = read(format, data)
    [task] = job.record.tasks
    assert [call.kind for call in task.tool_calls] in (["other"], ["mcp"])
    assert job.record.coverage.of("executed_commands").state == "partial"
    assert job.record.coverage.of("tool_calls").state == "whole"
