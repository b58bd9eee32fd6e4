"""GitHub Copilot CLI's events, fact by fact."""

from __future__ import annotations

import pytest
from pydantic import JsonValue
from tests.unit.evidence.importers.in_memory import (
    Row,
    calls_of,
    commands_of,
    golden,
    job_of,
    knows,
    lines,
    state_of,
    status_of,
    task_of,
)

FORMAT = "copilot-cli"
SESSION = golden(FORMAT, "session.jsonl")


def event(kind: str, **data: JsonValue) -> Row:
    return {"type": kind, "data": data, "timestamp": "2026-03-02T11:00:00Z"}


def said(text: str = "", *requests: JsonValue, id: str = "m1") -> Row:
    return event("assistant.message", messageId=id, content=text, toolRequests=list(requests))


def request(id: str, name: str = "bash", **given: JsonValue) -> Row:
    return {"toolCallId": id, "name": name, "arguments": given, "type": "function"}


def start(id: str, name: str = "bash", **given: JsonValue) -> Row:
    return event("tool.execution_start", toolCallId=id, toolName=name, arguments=given)


def complete(id: str, said: str = "ok", success: bool = True, **more: JsonValue) -> Row:
    result: Row = {"result": {"content": said}} if success else {}
    return event("tool.execution_complete", toolCallId=id, success=success, **{**result, **more})


ASKED = event("user.message", content="Mend it.")
END = said("Done.", id="end")
RESULT: Row = {"type": "result", "sessionId": "s", "exitCode": 0}


def outcome(done: Row, name: str = "bash") -> JsonValue:
    """What becomes of one call that completes so."""
    job = job_of(FORMAT, lines(ASKED, start("c1", name, command="id"), done, END, RESULT))
    [found] = calls_of(job)
    return [found.outcome, found.exit_code]


def test_a_request_and_its_start_are_one_call() -> None:
    """`toolRequests[]` and `tool.execution_start` tell of the same call."""
    job = job_of(
        FORMAT,
        lines(
            ASKED,
            said("", request("c1", command="id"), request("c2", command="ls")),
            start("c1", command="id"),
            start("c2", command="ls"),
            complete("c2"),
            complete("c1"),
            END,
            RESULT,
        ),
    )
    assert commands_of(job) == ["id", "ls"]
    assert state_of(job, "executed_commands") == "whole"


def test_a_request_that_never_started() -> None:
    """A call that was only asked for may not have run: it is there, and the record is partial."""
    job = job_of(FORMAT, lines(ASKED, said("", request("c1", command="id")), END, RESULT))
    assert commands_of(job) == ["id"]
    assert state_of(job, "executed_commands") == "partial"


def test_a_request_whose_start_is_missing() -> None:
    """A call that was asked for and completed is one call, also where nothing says it started."""
    asked = said("", request("c1", command="id"))
    job = job_of(FORMAT, lines(ASKED, asked, complete("c1"), END, RESULT))
    assert [(call.command, call.outcome) for call in calls_of(job)] == [("id", "ran")]
    assert state_of(job, "executed_commands") == "whole"


def test_the_exit_code() -> None:
    """The status stands in `result.contents[].exitCode`, in older versions in the text's end."""
    contents: JsonValue = [{"type": "shell_exit", "exitCode": 3}]
    result: Row = {"content": "x", "contents": contents}
    assert outcome(complete("c1", result=result)) == ["ran", 3]
    assert outcome(complete("c1", "x\n<shellId: 0 completed with exit code 4>")) == ["ran", 4]
    assert outcome(complete("c1", "<exited with exit code 4>\nmore")) == ["ran", None]


def test_outcomes() -> None:
    """A call fails, is refused or times out by the code of its error."""
    for code, became in (
        ("rejected", "refused"),
        ("denied", "refused"),
        ("timeout", "timed_out"),
        ("failure", "failed"),
    ):
        error: Row = {"message": "no", "code": code}
        assert outcome(complete("c1", success=False, error=error)) == [became, None]
    told: Row = {"message": "The user rejected this tool call."}
    assert outcome(complete("c1", success=False, error=told)) == ["refused", None]


def test_ephemeral_lines_count_for_nothing() -> None:
    """Deltas and other ephemeral lines repeat what whole events say."""
    delta: Row = event("assistant.message_delta", messageId="m1", deltaContent="Do")
    part: Row = event("tool.execution_partial_result", toolCallId="c1", partialOutput="x")
    job = job_of(
        FORMAT,
        lines(
            ASKED,
            delta | {"ephemeral": True},
            start("c1", command="id"),
            part | {"ephemeral": True},
            complete("c1"),
            END,
            RESULT,
        ),
    )
    assert [message.text for message in task_of(job).messages] == ["Done."]
    assert calls_of(job)[0].output == "ok"


def test_the_last_line_is_not_json() -> None:
    """`Session exported to: ...` is no part of it: a warning, and nothing is missing."""
    job = job_of(FORMAT, SESSION)
    assert job.warnings == ("the last line is no part of the transcript and was left out",)
    assert state_of(job, "executed_commands") == "whole"


def test_kinds_of_tools() -> None:
    """bash is a shell; create writes, edit updates; the editor does what its command says."""
    tools: list[tuple[str, Row, str]] = [
        ("bash", {"command": "id"}, "shell"),
        ("create", {"path": "/a", "file_text": ""}, "write_file"),
        ("edit", {"path": "/a", "old_str": "", "new_str": ""}, "update_file"),
        ("str_replace_editor", {"command": "create", "path": "/a"}, "write_file"),
        ("str_replace_editor", {"command": "str_replace", "path": "/a"}, "update_file"),
        ("str_replace_editor", {"command": "view", "path": "/a"}, "other"),
        ("apply_patch", {"input": "*** Begin Patch\n*** Add File: /a\n+x\n"}, "write_file"),
        ("view", {"path": "/a"}, "other"),
        ("write_bash", {"shellId": "0", "input": "y"}, "other"),
    ]
    starts = [start(f"c{n}", name, **given) for n, (name, given, _) in enumerate(tools)]
    found = calls_of(job_of(FORMAT, lines(ASKED, *starts, END, RESULT)))
    assert [call.kind for call in found] == [kind for _, _, kind in tools]


def test_mcp_calls() -> None:
    """The server and the tool are named apart when the call starts."""
    begun = start("c1", "srv-do_it", a=1)
    data = begun["data"]
    assert isinstance(data, dict)
    data |= {"mcpServerName": "srv", "mcpToolName": "do_it"}
    [found] = calls_of(job_of(FORMAT, lines(ASKED, said("", request("c1")), begun, END, RESULT)))
    assert (found.kind, found.server, found.tool) == ("mcp", "srv", "do_it")


def test_sub_agents_are_tasks_of_their_own() -> None:
    """A sub-agent's events name the call that started it, or the sub-agent itself."""
    job = job_of(FORMAT, SESSION)
    main, other = job.record.tasks
    assert (other.agent, other.description) == ("explore", "Count the messages.")
    assert [call.command for call in other.tool_calls] == ["rabbitmqctl list_queues"]
    assert [call.tool for call in main.tool_calls].count("task") == 1
    by_parent = event(
        "tool.execution_start",
        toolCallId="c9",
        toolName="bash",
        arguments={"command": "id"},
        parentToolCallId="t1",
    )
    job = job_of(FORMAT, lines(ASKED, start("t1", "task", prompt="Go."), by_parent, END, RESULT))
    assert [task.description for task in job.record.tasks] == ["Mend it.", "Go."]


def test_a_sub_agent_without_events_is_missed() -> None:
    """Nobody knows what a sub-agent did whose events are not there."""
    rows = (ASKED, start("t1", "task", prompt="Go."), complete("t1"), END, RESULT)
    assert state_of(job_of(FORMAT, lines(*rows)), "executed_commands") == "partial"


@pytest.mark.parametrize(
    ("last", "status", "fault"),
    [
        ([END], "completed", None),
        ([END, RESULT], "completed", None),
        ([said("", request("c1", command="id"))], "failed", "infrastructure"),
        ([END, ASKED], "failed", "infrastructure"),
        ([RESULT | {"exitCode": 1}], "failed", "infrastructure"),
        ([event("abort", reason="user_initiated"), RESULT], "cancelled", "operator"),
        ([event("session.error", message="429")], "failed", "infrastructure"),
        (
            [END, event("session.shutdown", shutdownType="error", errorReason="x")],
            "failed",
            "infrastructure",
        ),
    ],
)
def test_how_a_session_ends(last: list[JsonValue], status: str, fault: str | None) -> None:
    """An answer without calls, or the last event, says how it ended."""
    job = job_of(FORMAT, lines(ASKED, *last))
    assert status_of(job) == status
    assert (job.record.stop.fault if job.record.stop else None) == fault


def test_usage() -> None:
    """Answers tell what was written; the shutdown has the sums of all models."""
    usage = task_of(job_of(FORMAT, SESSION)).usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (None, 97)
    total: Row = {"gpt-5": {"usage": {"inputTokens": 10, "outputTokens": 2}}}
    job = job_of(FORMAT, lines(ASKED, END, event("session.shutdown", modelMetrics=total)))
    usage = task_of(job).usage
    assert usage is not None
    assert (usage.model, usage.input_tokens, usage.output_tokens) == ("gpt-5", 10, 2)


def test_the_programs_own_words_are_not_asked() -> None:
    """A message that the program puts in, say of a skill, is no request."""
    job = job_of(FORMAT, lines(ASKED, event("user.message", content="x", source="skill-a"), END))
    assert job.record.ticket.messages == ()


def test_names_that_come_twice() -> None:
    """A second call with a name is another call once the first has returned."""
    first = (said("", request("c1", command="a")), start("c1", command="a"), complete("c1"))
    again = (said("", request("c1", command="b")), start("c1", command="b"), complete("c1"))
    assert commands_of(job_of(FORMAT, lines(ASKED, *first, *again, END))) == ["a", "b"]


def test_only_such_events_are_known() -> None:
    """Files of others are not taken for Copilot's."""
    for data in (b"", lines({"type": "session.start"}), lines({"type": "user", "data": {}})):
        assert not knows(FORMAT, data)
