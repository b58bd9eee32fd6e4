"""OpenCode's exported sessions, fact by fact."""

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
    lines,
    state_of,
    status_of,
    task_of,
)

FORMAT = "opencode"
SESSION = golden(FORMAT, "session.json")
ABORTED = golden(FORMAT, "aborted.json")
MS = 1772456400000


def session(*messages: JsonValue) -> bytes:
    info: Row = {"id": "ses", "directory": "/", "time": {"created": MS}, "version": "1.2"}
    return json.dumps({"info": info, "messages": list(messages)}).encode()


def asked(text: str = "Mend it.", **more: JsonValue) -> Row:
    part: Row = {"type": "text", "text": text, **more}
    return {"info": {"role": "user", "time": {"created": MS}}, "parts": [part]}


def answer(*parts: JsonValue, finish: str | None = "tool-calls", **info: JsonValue) -> Row:
    told: Row = {"id": "m", "role": "assistant", "modelID": "x", "time": {"completed": MS}}
    return {"info": {**told, "finish": finish, **info}, "parts": list(parts)}


def tool(
    name: str,
    given: JsonValue,
    said: str = "ok",
    status: str = "completed",
    id: str = "c1",
    exit: JsonValue = None,
) -> Row:
    state: Row = {"status": status, "input": given, "time": {"start": MS, "end": MS + 1500}}
    state |= {"error": said} if status == "error" else {"output": said, "metadata": {"exit": exit}}
    return {"type": "tool", "tool": name, "callID": id, "id": f"prt_{name}", "state": state}


END = answer({"type": "text", "text": "Done.", "id": "p"}, finish="stop", id="end")


def outcome(said: str, status: str = "completed", exit: JsonValue = None) -> JsonValue:
    """What becomes of one command that returns so."""
    part = tool("bash", {"command": "id"}, said, status, exit=exit)
    [found] = calls_of(job_of(FORMAT, session(asked(), answer(part), END)))
    return [found.outcome, found.exit_code]


def test_commands_their_status_and_times() -> None:
    """A command is in `state.input.command`, its status in `state.metadata.exit`, times are ms."""
    part = tool("bash", {"command": "id", "timeout": 5}, exit=3)
    [found] = calls_of(job_of(FORMAT, session(asked(), answer(part), END)))
    assert (found.command, found.exit_code, found.outcome) == ("id", 3, "ran")
    assert found.started_at is not None
    assert found.ended_at is not None
    assert found.started_at.isoformat() == "2026-03-02T13:00:00+00:00"
    assert (found.ended_at - found.started_at).total_seconds() == 1.5


def test_outcomes() -> None:
    """By the state of the call; a command without a status may have timed out."""
    late = "x\n<shell_metadata>\nshell tool terminated command after exceeding timeout 9 ms.\n"
    assert outcome(late + "</shell_metadata>") == ["timed_out", None]
    older = "<bash_metadata>\nbash tool terminated command after exceeding timeout 9 ms\n"
    assert outcome(older + "</bash_metadata>") == ["timed_out", None]
    assert outcome("terminated command after exceeding timeout", exit=0) == ["ran", 0]
    rejected = "The user rejected permission to use this specific tool call."
    assert outcome(rejected, "error") == ["refused", None]
    assert outcome(rejected) == ["ran", None]
    ruled = "The user has specified a rule which prevents you from using this specific tool call."
    assert outcome(ruled, "error") == ["refused", None]
    assert outcome("Tool execution aborted", "error") == ["failed", None]


def test_a_call_without_an_end() -> None:
    """A call that runs or waits may not have run."""
    part = tool("bash", {"command": "id"}, status="running")
    job = job_of(FORMAT, session(asked(), answer(part), END))
    assert state_of(job, "executed_commands") == "partial"


def test_kinds_of_tools() -> None:
    """bash, write, edit; a patch by its files; `SERVER_TOOL` is of an MCP server."""
    patch = "*** Begin Patch\n*** Add File: /n\n+x\n*** Delete File: /d\n*** End Patch"
    parts = [
        tool("bash", {"command": "id"}),
        tool("write", {"filePath": "/w", "content": ""}),
        tool("edit", {"filePath": "/e"}),
        tool("patch", {"patchText": patch}),
        tool("srv_do", {"a": 1}),
        tool("apply_patch", {"patchText": "no patch"}),
        tool("read", {"filePath": "/r"}),
        tool("invalid", {"tool": "fly", "error": "no such tool"}),
    ]
    found = calls_of(job_of(FORMAT, session(asked(), answer(*parts), END)))
    assert [each.kind for each in found] == [
        "shell", "write_file", "update_file", "write_file", "update_file", "mcp", "other", "other",
        "other",
    ]  # fmt: skip
    assert [each.path for each in found[1:5]] == ["/w", "/e", "/n", "/d"]
    assert (found[5].server, found[5].tool) == ("srv", "do")
    assert found[-1].outcome == "failed"


def test_an_mcp_name_that_can_be_read_in_two_ways() -> None:
    """Where a server's name ends is not clear: the record does not claim to know."""
    job = job_of(FORMAT, session(asked(), answer(tool("my_srv_do", {})), END))
    assert state_of(job, "use_mcp_tool") == "partial"


def test_parts_that_share_a_name_are_calls_of_their_own() -> None:
    """Some models call every call the same."""
    parts = [tool("bash", {"command": command}) for command in ("a", "b")]
    job = job_of(FORMAT, session(asked(), answer(*parts), END))
    assert commands_of(job) == ["a", "b"]


def test_a_sub_agent_is_kept_elsewhere() -> None:
    """What a sub-agent did is in a session of its own."""
    part = tool("task", {"prompt": "Go."})
    assert state_of(job_of(FORMAT, session(asked(), answer(part), END)), "tasks") == "partial"
    refused = tool("task", {"prompt": "Go."}, "The user rejected permission", "error")
    assert state_of(job_of(FORMAT, session(asked(), answer(refused), END)), "tasks") == "whole"


def test_the_programs_own_words_are_not_asked() -> None:
    """A synthetic part is the program's."""
    job = job_of(FORMAT, session(asked(), asked("x", synthetic=True), END))
    assert job.record.ticket.body == "Mend it."
    assert job.record.ticket.messages == ()


def aborted(name: str) -> Row:
    return answer(finish=None, error={"name": name, "data": {"message": "x"}})


@pytest.mark.parametrize(
    ("last", "status", "fault"),
    [
        (END, "completed", None),
        (answer({"type": "step-finish", "reason": "stop"}, finish=None), "completed", None),
        (answer(finish=None), "completed", None),
        (answer(finish=None, time={}), "failed", "infrastructure"),
        (answer(tool("bash", {"command": "id"})), "failed", "infrastructure"),
        (asked("More."), "failed", "infrastructure"),
        (answer(finish="length"), "timed_out", "agent"),
        (aborted("MessageOutputLengthError"), "timed_out", "agent"),
        (aborted("MessageAbortedError"), "cancelled", "operator"),
        (aborted("APIError"), "failed", "infrastructure"),
    ],
)
def test_how_a_session_ends(last: Row, status: str, fault: str | None) -> None:
    """The last message says how it ended."""
    job = job_of(FORMAT, session(asked(), last))
    assert status_of(job) == status
    assert (job.record.stop.fault if job.record.stop else None) == fault


def test_usage() -> None:
    """Input is all that was read, from the cache too; output what was thought and said."""
    usage = task_of(job_of(FORMAT, SESSION)).usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cost_usd) == (2075, 57, 0.75)


def test_the_head_may_stand_behind_the_messages() -> None:
    """The order of a document's keys says nothing."""
    document = json.loads(SESSION)
    turned = json.dumps({"messages": document["messages"], "info": document["info"]}).encode()
    assert job_of(FORMAT, turned).record == job_of(FORMAT, SESSION).record


def test_only_sessions_are_known() -> None:
    """Files of others are not taken for sessions."""
    for data in (b"", b"{}", b'{"info": {"id": 1}, "messages": [{"role": "user"}]}'):
        assert not knows(FORMAT, data)


RUN = golden(FORMAT, "run.jsonl")


def event(kind: str, **part: JsonValue) -> Row:
    return {"type": kind, "timestamp": MS, "sessionID": "ses", "part": part}


def used(name: str, given: JsonValue, said: str = "ok", status: str = "completed") -> Row:
    return event("tool_use", **tool(name, given, said, status))


STEP = event("step_start", type="step-start")
CALLED = event("step_finish", type="step-finish", reason="tool-calls")
OVER = event("step_finish", type="step-finish", reason="stop")
BROKE: Row = {"type": "error", "sessionID": "ses", "error": {"name": "APIError", "data": {}}}


@pytest.mark.parametrize(
    ("rows", "status", "fault"),
    [
        ([STEP, OVER], "completed", None),
        ([STEP, used("bash", {"command": "ls"}), CALLED], "failed", "infrastructure"),
        ([STEP, OVER, STEP], "failed", "infrastructure"),
        ([STEP, BROKE], "failed", "infrastructure"),
        ([STEP, {**BROKE, "error": {"name": "MessageAbortedError"}}], "cancelled", "operator"),
        ([event("step_finish", reason="length")], "timed_out", "agent"),
    ],
)
def test_how_a_run_ends(rows: list[JsonValue], status: str, fault: str | None) -> None:
    """`opencode run --format json`: the last step says how it ended, or an error does."""
    job = job_of(FORMAT, lines(*rows))
    assert status_of(job) == status
    assert (job.record.stop.fault if job.record.stop else None) == fault


def test_a_step_whose_call_is_not_printed_is_missed() -> None:
    """Older versions print no call that failed, but for the step's own word that there was one."""
    ran = used("bash", {"command": "ls"})
    whole = job_of(FORMAT, lines(STEP, ran, CALLED, STEP, OVER))
    assert state_of(whole, "executed_commands") == "whole"
    lost = job_of(FORMAT, lines(STEP, ran, CALLED, STEP, CALLED, STEP, OVER))
    assert state_of(lost, "executed_commands") == "partial"


@pytest.mark.parametrize("part", [None, [], "text", {}, {"type": "tool", "tool": "bash"}])
def test_a_call_that_cannot_be_read_is_missed(part: JsonValue) -> None:
    """What a line holds instead of a call may have been one."""
    row: Row = {"type": "tool_use", "sessionID": "ses", "part": part}
    job = job_of(FORMAT, lines(STEP, row, CALLED, STEP, OVER))
    assert state_of(job, "executed_commands") == "partial"


def test_an_event_that_is_not_known_may_be_a_call() -> None:
    """A kind of event of a later version is told, and reasoning is none."""
    for kind, state in (("reasoning", "whole"), ("tool_more", "partial")):
        job = job_of(FORMAT, lines(STEP, event(kind, text="x"), OVER))
        assert state_of(job, "executed_commands") == state


def test_what_was_asked_is_not_printed() -> None:
    """The request is no event of a run, so a rule about it is an error and not failed."""
    assert state_of(job_of(FORMAT, RUN), "task_description") == "unavailable"
