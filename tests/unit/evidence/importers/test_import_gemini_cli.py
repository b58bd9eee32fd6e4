"""Gemini CLI's sessions, fact by fact."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue
from tests.unit.evidence.importers.in_memory import (
    Row,
    assert_only_our_errors,
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

FORMAT = "gemini-cli"
SESSION = golden(FORMAT, "session.jsonl")
OLDER = golden(FORMAT, "older.json")
HEAD: Row = {"sessionId": "s", "projectHash": "h", "startTime": "2026-03-02T12:00:00Z"}


def message(id: str, kind: str, content: JsonValue = "", **more: JsonValue) -> Row:
    return {
        "id": id, "type": kind, "content": content, "timestamp": "2026-03-02T12:00:00Z", **more,
    }  # fmt: skip


def call(
    id: str,
    said: str = "ok",
    status: str = "success",
    name: str = "run_shell_command",
    given: JsonValue = None,
    **more: JsonValue,
) -> Row:
    answer: Row = {"output" if status == "success" else "error": said}
    result: JsonValue = [{"functionResponse": {"id": id, "name": name, "response": answer}}]
    if given is None:
        given = {"command": "id"}
    return {"id": id, "name": name, "args": given, "status": status, "result": result, **more}


ASKED = message("u", "user", [{"text": "Mend it."}])
END = message("end", "gemini", "Done.")


def job_with(*calls: JsonValue) -> bytes:
    return lines(HEAD, ASKED, message("g", "gemini", toolCalls=list(calls)), END)


def outcome(*args: str, **more: JsonValue) -> JsonValue:
    """What becomes of one call that returns so."""
    [found] = calls_of(job_of(FORMAT, job_with(call("c1", *args, **more))))  # type: ignore[arg-type]
    return [found.outcome, found.exit_code]


def test_the_last_form_of_a_message_counts() -> None:
    """A message is written again as a later line with the same `id`: the last one wins."""
    running = call("c1", "", "executing", given={"command": "old"})
    job = job_of(
        FORMAT,
        lines(
            HEAD,
            ASKED,
            ASKED,
            message("g", "gemini", "I"),
            message("g", "gemini", "I look.", toolCalls=[running]),
            message("g", "gemini", "I look.", toolCalls=[call("c1", given={"command": "new"})]),
            message("g", "gemini", "I look.", toolCalls=[call("c1", given={"command": "new"})]),
            message("end", "gemini", "Done", tokens={"input": 1, "output": 1}),
            message("end", "gemini", "Done.", tokens={"input": 5, "output": 2, "thoughts": 3}),
        ),
    )
    main = task_of(job)
    assert [each.text for each in main.messages] == ["I look.", "Done."]
    assert commands_of(job) == ["new"]
    assert main.tool_calls[0].output == "ok"
    assert job.record.ticket.messages == ()
    assert main.usage is not None
    assert (main.usage.input_tokens, main.usage.output_tokens) == (5, 5)


def test_lines_with_set_are_patches() -> None:
    """A `$set` line is a patch: messages in it count, the program's own context does not."""
    context = message("x", "user", [{"text": "<session_context>\nhello"}])
    patch: Row = {"$set": {"messages": [context, ASKED], "lastUpdated": "x"}}
    job = job_of(FORMAT, lines(HEAD, patch, ASKED, {"$set": {"lastUpdated": "y"}}, END))
    assert job.record.ticket.body == "Mend it."
    assert job.record.ticket.messages == ()


def test_what_was_taken_back_was_done_all_the_same() -> None:
    """A rewind takes messages out of the talk; the commands ran, so they stay."""
    done = message("g", "gemini", toolCalls=[call("c1")])
    rewound = lines(HEAD, ASKED, done, {"$rewindTo": "g"}, END)
    assert commands_of(job_of(FORMAT, rewound)) == ["id"]


def test_answers_of_tools_are_no_requests() -> None:
    """What tools gave back stands among the user's messages, without a text."""
    answer: JsonValue = [{"functionResponse": {"id": "c1", "response": {"output": "x"}}}]
    job = job_of(FORMAT, lines(HEAD, ASKED, message("f", "user", answer), END))
    assert job.record.ticket.messages == ()


def test_kinds_of_tools() -> None:
    """The shell, two tools for files, MCP servers by their shown name; reading is other."""
    found = calls_of(
        job_of(
            FORMAT,
            job_with(
                call("1"),
                call("2", name="write_file", given={"file_path": "/w", "content": "x"}),
                call("3", name="replace", given={"file_path": "/r", "old_string": "a"}),
                call("4", name="mcp_a_b_c", given={}, displayName="b_c (a MCP Server)"),
                call("5", name="mcp_srv_do", given={}),
                call("6", name="read_file", given={"file_path": "/x"}),
            ),
        )
    )
    assert [each.kind for each in found] == [
        "shell", "write_file", "update_file", "mcp", "mcp", "other",
    ]  # fmt: skip
    assert [each.path for each in found[1:3]] == ["/w", "/r"]
    assert [(each.server, each.tool) for each in found[3:5]] == [("a", "b_c"), ("srv", "do")]


def test_an_mcp_name_that_can_be_read_in_two_ways() -> None:
    """Where a server's name ends is not clear: the record does not claim to know."""
    job = job_of(FORMAT, job_with(call("1", name="mcp_my_srv_do", given={})))
    assert state_of(job, "use_mcp_tool") == "partial"
    assert state_of(job, "executed_commands") == "whole"


FOOT = "<untrusted_context>\nOutput: {}\nExit Code: 28\nProcess Group PGID: 3\n</untrusted_context>"


def test_the_exit_code_stands_at_the_foot() -> None:
    """A status is read at the foot of the answer only: a command may print such a line too."""
    assert outcome(FOOT.format("x")) == ["ran", 28]
    assert outcome("<untrusted_context>\nOutput: x\nExit Code: 5\ny\n</untrusted_context>") == [
        "ran",
        None,
    ]
    assert outcome("Stdout: x\nError: (none)\nExit Code: 0\nSignal: (none)") == ["ran", 0]


def test_outcomes() -> None:
    """By the status of the call, and by its words where the status is not enough."""
    asked = "[Operation Cancelled] Reason: User did not allow tool call"
    assert outcome(asked, "cancelled") == ["refused", None]
    assert outcome("User cancelled the operation.", "cancelled") == ["failed", None]
    assert outcome("Tool execution denied by policy.", "error") == ["refused", None]
    assert outcome('Tool "x" not found', "error") == ["failed", None]
    late = "Command was automatically cancelled because it exceeded the timeout of 5.0 minutes"
    assert outcome(late) == ["timed_out", None]


def test_a_call_that_waits() -> None:
    """A call without an end may not have run."""
    job = job_of(FORMAT, job_with(call("c1", "", "awaiting_approval")))
    assert state_of(job, "executed_commands") == "partial"


def test_a_sub_agent_is_kept_elsewhere() -> None:
    """A call of another agent names it; what that one did is in a file of its own."""
    job = job_of(FORMAT, job_with(call("c1", name="investigator", given={}, agentId="a1")))
    assert state_of(job, "tasks") == "partial"


@pytest.mark.parametrize(
    ("last", "status", "fault"),
    [
        (END, "completed", None),
        (message("g", "gemini", "I look.", toolCalls=[call("c")]), "failed", "infrastructure"),
        (message("g", "gemini", ""), "failed", "infrastructure"),
        (message("u2", "user", [{"text": "More."}]), "failed", "infrastructure"),
        (message("e", "error", "[API Error: quota]"), "failed", "infrastructure"),
        (message("i", "info", "Request cancelled."), "cancelled", "operator"),
    ],
)
def test_how_a_session_ends(last: Row, status: str, fault: str | None) -> None:
    """An answer without calls is the end."""
    job = job_of(FORMAT, lines(HEAD, ASKED, last))
    assert status_of(job) == status
    assert (job.record.stop.fault if job.record.stop else None) == fault


def test_older_versions_keep_one_document() -> None:
    """A session of an older version is one document with the same messages."""
    job = job_of(FORMAT, OLDER)
    assert commands_of(job) == ["ping -c 1 web-03"]
    assert job.record.job is not None
    assert job.record.job.id == "11bb"


def test_only_sessions_are_known() -> None:
    """Files of others are not taken for sessions."""
    for data in (b"", lines({"sessionId": "s"}), b'{"sessionId": "s", "messages": []}'):
        assert not knows(FORMAT, data)


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    """Nor in what is none of it."""
    assert_only_our_errors(FORMAT, lines(HEAD) + data)
