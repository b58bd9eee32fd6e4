"""Codex rollouts, fact by fact."""

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

FORMAT = "codex"
ROLLOUT = golden(FORMAT, "rollout.jsonl")
OLDER = golden(FORMAT, "interrupted.jsonl")
HEAD = "Chunk ID: a\nWall time: 1.0 seconds\n{}\nOriginal token count: 1\nOutput:\n{}"


def line(kind: str, **payload: JsonValue) -> Row:
    return {"timestamp": "2026-03-02T10:00:00Z", "type": kind, "payload": payload}


def item(kind: str, **payload: JsonValue) -> Row:
    return line("response_item", **{"type": kind, **payload})


def event(kind: str, **payload: JsonValue) -> Row:
    return line("event_msg", **{"type": kind, **payload})


def call(id: str, name: str = "exec_command", **given: JsonValue) -> Row:
    return item("function_call", name=name, arguments=json.dumps(given), call_id=id)


def output(id: str, said: JsonValue) -> Row:
    return item("function_call_output", call_id=id, output=said)


def said(text: str, **more: JsonValue) -> Row:
    parts: JsonValue = [{"type": "output_text", "text": text}]
    return item("message", role="assistant", content=parts, **more)


ASKED = event("user_message", message="Mend it.")
DONE = event("task_complete", last_agent_message="Done.")


def outcome(said: JsonValue, name: str = "exec_command", **given: JsonValue) -> JsonValue:
    """What becomes of one call that gets this result."""
    given = given or {"cmd": "id"}
    job = job_of(FORMAT, lines(ASKED, call("c1", name, **given), output("c1", said), DONE))
    [found] = calls_of(job)
    return [found.outcome, found.exit_code]


def test_arguments_are_json_in_a_text_and_the_key_is_cmd() -> None:
    """`exec_command` has its arguments as a JSON string with the key `cmd`."""
    job = job_of(FORMAT, lines(ASKED, call("c1", cmd="uptime", workdir="/"), DONE))
    [found] = calls_of(job)
    assert (found.kind, found.tool) == ("shell", "exec_command")
    assert found.arguments == {"command": "uptime", "workdir": "/"}


def test_polls_are_no_commands() -> None:
    """A slow command is finished by `write_stdin` calls: they are other, its exit code is its."""
    running, over = (
        HEAD.format("Process running with session ID 7", ""),
        HEAD.format("Process exited with code 3", "x"),
    )
    job = job_of(
        FORMAT,
        lines(
            ASKED,
            call("c1", cmd="make"),
            output("c1", running),
            call("c2", "write_stdin", session_id=7, chars=""),
            output("c2", running),
            call("c3", "write_stdin", session_id=7),
            output("c3", over),
            DONE,
        ),
    )
    found = calls_of(job)
    assert [(each.kind, each.tool, each.exit_code) for each in found] == [
        ("shell", "exec_command", 3),
        ("other", "write_stdin", None),
        ("other", "write_stdin", None),
    ]
    assert (found[0].output or "").endswith("\nOutput:\nx")


def test_the_exit_code_stands_in_the_head_of_the_output() -> None:
    """`Process exited with code N` counts in the head only: a command may print it too."""
    assert outcome(HEAD.format("Process exited with code 7", "no")) == ["ran", 7]
    printed = HEAD.format("Process running with session ID 1", "Process exited with code 7")
    assert outcome(printed) == ["ran", None]
    older = "Exit code: 2\nWall time: 1 seconds\nOutput:\nx"
    assert outcome(older, "shell_command", command="a") == ["ran", 2]


def test_what_was_said_stands_there_twice() -> None:
    """Assistant text is a `response_item` and an `event_msg`: it counts once, either way."""
    item_too = [event("agent_message", message="Hm."), said("Hm.", id="m1")]
    for rows in (item_too, item_too[:1], item_too[1:]):
        job = job_of(FORMAT, lines(ASKED, *rows, DONE))
        assert [message.text for message in task_of(job).messages] == ["Hm."]


def test_the_request_stands_there_twice() -> None:
    """The request is an event and an item; only where the event is missing the item counts."""
    parts: JsonValue = [{"type": "input_text", "text": "Mend it."}]
    context: JsonValue = [{"type": "input_text", "text": "<environment_context>x"}]
    items = [
        item("message", role="user", content=context),
        item("message", role="user", content=parts),
    ]
    for rows in ([*items, ASKED], items):
        job = job_of(FORMAT, lines(*rows, DONE))
        assert job.record.ticket.body == "Mend it."
        assert job.record.ticket.messages == ()


def test_older_shells_are_given_words() -> None:
    """`shell` has a list of words: of a shell among them its text, else the words quoted."""
    job = job_of(
        FORMAT,
        lines(
            ASKED,
            call("1", "shell", command=["bash", "-lc", "ls /tmp | wc"]),
            call("2", "shell", command=["ls", "a b"]),
            item(
                "local_shell_call",
                call_id="3",
                action={"type": "exec", "command": ["sh", "-c", "x"]},
            ),
            DONE,
        ),
    )
    assert commands_of(job) == ["ls /tmp | wc", "ls 'a b'", "x"]


def test_older_results_are_json_in_a_text() -> None:
    """An older result is JSON with the status in it."""
    said = json.dumps({"output": "no\n", "metadata": {"exit_code": 4, "duration_seconds": 1}})
    assert outcome(said, "shell", command=["false"]) == ["ran", 4]


def test_time_outs() -> None:
    """A command that timed out has the status 124 and says so."""
    late = {"output": "command timed out after 10 milliseconds\n", "metadata": {"exit_code": 124}}
    assert outcome(json.dumps(late), "shell", command=["x"]) == ["timed_out", 124]
    own = {"output": "gave up\n", "metadata": {"exit_code": 124}}
    assert outcome(json.dumps(own), "shell", command=["timeout", "1", "x"]) == ["ran", 124]


@pytest.mark.parametrize(
    "text",
    [
        "exec command rejected by user",
        'exec_command failed for `x`: CreateProcess { message: "Rejected(\\"no\\")" }',
    ],
)
def test_refused_commands(text: str) -> None:
    """What was rejected before it ran is refused; a command that prints the words was not."""
    assert outcome(text) == ["refused", None]
    assert outcome(HEAD.format("Process exited with code 1", text)) == ["ran", 1]


def test_failed_tools() -> None:
    """What the program itself could not do failed."""
    assert outcome("failed to parse function arguments: missing field `cmd`") == ["failed", None]
    assert outcome("unsupported call: fly", "fly") == ["failed", None]
    assert outcome({"content": "no", "success": False}, "view_image", path="/x") == ["failed", None]
    assert outcome("aborted by user after 3.0s") == ["ran", None]


PATCH = "\n".join(
    [
        "*** Begin Patch",
        "*** Update File: /etc/a.conf",
        "@@",
        "-x",
        "+y",
        "*** Add File: /etc/b.conf",
        "+*** Add File: no file",
        "*** End Patch",
    ]
)


def test_a_patch_is_a_call_for_each_file() -> None:
    """A patch of several files becomes one call each, and what it returned holds for all."""
    given = item("custom_tool_call", call_id="c1", name="apply_patch", input=PATCH)
    for status, became in ((0, "ran"), (1, "failed")):
        result = output("c1", f"Exit code: {status}\nWall time: 0 seconds\nOutput:\nx")
        found = calls_of(job_of(FORMAT, lines(ASKED, given, result, DONE)))
        assert [(each.id, each.kind, each.path, each.outcome) for each in found] == [
            ("c1/1", "update_file", "/etc/a.conf", became),
            ("c1/2", "write_file", "/etc/b.conf", became),
        ]


def test_a_patch_given_to_a_shell_is_a_patch() -> None:
    """The program takes `apply_patch` among the words of a shell call for itself."""
    job = job_of(FORMAT, lines(ASKED, call("c1", "shell", command=["apply_patch", PATCH]), DONE))
    assert commands_of(job) == []
    assert [each.path for each in calls_of(job)] == ["/etc/a.conf", "/etc/b.conf"]


def test_mcp_calls() -> None:
    """A server and its tool stand in the name, in a namespace, or in the event of its end."""
    plain = call("1", "mcp__my_srv__do_it", a=1)
    spaced = item(
        "function_call", name="do_it", namespace="mcp__my_srv__", arguments="{}", call_id="2"
    )
    unknown = call("3", "do_it", a=1)
    asked: Row = {"server": "my_srv", "tool": "do_it", "arguments": {"a": 1}}
    ended = event("mcp_tool_call_end", call_id="3", invocation=asked, result={"Err": "no"})
    job = job_of(FORMAT, lines(ASKED, plain, spaced, unknown, ended, output("3", "no"), DONE))
    found = calls_of(job)
    assert {(each.kind, each.server, each.tool) for each in found} == {("mcp", "my_srv", "do_it")}
    assert [each.outcome for each in found] == ["failed", "failed", "failed"]
    assert state_of(job, "use_mcp_tool") == "partial"  # the first two have no result


def test_code_that_calls_tools_hides_them() -> None:
    """What the agent's own code calls is not told apart: it is not known to be whole."""
    given = item("custom_tool_call", call_id="c1", name="exec", input="await tools.exec()")
    job = job_of(FORMAT, lines(ASKED, given, output("c1", "x"), DONE))
    assert state_of(job, "executed_commands") == "partial"
    assert state_of(job, "agent_messages") == "whole"


def test_a_spawned_agent_is_kept_elsewhere() -> None:
    """A spawned agent has a rollout of its own: what it did is not in this one."""
    job = job_of(FORMAT, lines(ASKED, call("c1", "spawn_agent", m="x"), output("c1", "{}"), DONE))
    assert state_of(job, "tasks") == "partial"


def test_the_end_of_a_command_as_an_event() -> None:
    """Some versions keep an event of a command's end: it adds its status, or the command."""
    known = event("exec_command_end", call_id="c1", exit_code=5, aggregated_output="x")
    job = job_of(FORMAT, lines(ASKED, call("c1", cmd="id"), known, output("c1", "x"), DONE))
    assert [(each.exit_code, each.output) for each in calls_of(job)] == [(5, "x")]
    alone = event("exec_command_end", call_id="c2", command=["bash", "-lc", "id"], exit_code=0)
    assert commands_of(job_of(FORMAT, lines(ASKED, alone, DONE))) == ["id"]


def test_usage_is_the_last_total() -> None:
    """Token counts are totals: the last one holds."""
    usage = task_of(job_of(FORMAT, ROLLOUT)).usage
    assert usage is not None
    assert (usage.model, usage.input_tokens, usage.output_tokens) == ("gpt-5.4-mini", 300, 35)


STARTED = event("task_started")


@pytest.mark.parametrize(
    ("last", "status", "fault"),
    [
        ([DONE], "completed", None),
        ([said("Done.", phase="final_answer")], "completed", None),
        ([said("Done.")], "failed", "infrastructure"),  # its version would say that it ended
        ([said("Wait.", phase="commentary")], "failed", "infrastructure"),
        ([call("c", cmd="id")], "failed", "infrastructure"),
        ([DONE, event("user_message", message="More.")], "failed", "infrastructure"),
        ([event("turn_aborted", reason="interrupted")], "cancelled", "operator"),
        ([event("turn_aborted", reason="budget_limited")], "timed_out", "agent"),
        ([event("error", message="429"), event("task_complete")], "failed", "infrastructure"),
    ],
)
def test_how_a_rollout_ends(last: list[JsonValue], status: str, fault: str | None) -> None:
    """Its events say how it ended."""
    job = job_of(FORMAT, lines(STARTED, ASKED, *last))
    assert status_of(job) == status
    assert (job.record.stop.fault if job.record.stop else None) == fault


def test_an_older_rollout_ends_with_an_answer() -> None:
    """Where no event marks a turn, an answer without calls is the end."""
    assert status_of(job_of(FORMAT, lines(ASKED, said("Done.")))) == "completed"


def test_names_that_come_twice() -> None:
    """A second call with a name is another call once the first has returned."""
    twice = (call("c1", cmd="a"), output("c1", "x"), call("c1", cmd="b"), output("c1", "y"))
    found = calls_of(job_of(FORMAT, lines(ASKED, *twice, DONE)))
    assert [(each.id, each.command, each.output) for each in found] == [
        ("c1", "a", "x"),
        ("c1#2", "b", "y"),
    ]


def test_arguments_that_are_no_json() -> None:
    """A call whose arguments break off is kept as the text that it is; no command is made up."""
    broken = item("function_call", name="exec_command", arguments='{"cmd": "rm', call_id="c1")
    failed = output("c1", "failed to parse function arguments: EOF")
    [found] = calls_of(job_of(FORMAT, lines(ASKED, broken, failed, DONE)))
    assert (found.kind, found.outcome) == ("other", "failed")


def test_only_rollouts_are_known() -> None:
    """Files of others are not taken for rollouts."""
    for data in (b"", lines({"type": "response_item"}), lines({"type": "x", "payload": {}})):
        assert not knows(FORMAT, data)
    assert knows(FORMAT, ROLLOUT)


BARE = golden(FORMAT, "bare.jsonl")
STREAM = golden(FORMAT, "exec.jsonl")


def test_bare_items_have_no_times() -> None:
    """The head of an older rollout is the only line with a time, and says nothing of the work."""
    assert state_of(job_of(FORMAT, BARE), "times") == "unavailable"


def thing(kind: str, over: bool = True, **more: JsonValue) -> Row:
    about: Row = {"id": "item_1", "type": kind, **more}
    return {"type": "item.completed" if over else "item.started", "item": about}


THREAD: Row = {"type": "thread.started", "thread_id": "t"}
TURN: Row = {"type": "turn.completed", "usage": {}}


def command(text: JsonValue, over: bool = True, **more: JsonValue) -> Row:
    return thing("command_execution", over, command=text, status="completed", **more)


@pytest.mark.parametrize(
    ("told", "given"),
    [
        ("bash -lc 'echo \"a b\"'", 'echo "a b"'),
        ("/usr/bin/zsh -lc ls", "ls"),
        ("bash -lc 'bash -c ls'", "bash -c ls"),
        ("ls -l /srv", "ls -l /srv"),
        ("bash -lc 'it''s \"", "bash -lc 'it''s \""),
    ],
)
def test_the_stream_shows_what_the_shell_got(told: str, given: str) -> None:
    """`codex exec --json` shows the words that start a shell; the command is what it is given."""
    assert commands_of(job_of(FORMAT, lines(THREAD, command(told, exit_code=0), TURN))) == [given]


@pytest.mark.parametrize(
    ("last", "status", "fault"),
    [
        ([TURN], "completed", None),
        ([], "failed", "infrastructure"),
        ([TURN, {"type": "turn.started"}], "failed", "infrastructure"),
        ([{"type": "turn.failed", "error": {"message": "429"}}], "failed", "infrastructure"),
        ([{"type": "error", "message": "stream lost"}], "failed", "infrastructure"),
    ],
)
def test_how_a_stream_ends(last: list[JsonValue], status: str, fault: str | None) -> None:
    """Its last turn says how it ended."""
    job = job_of(FORMAT, lines(THREAD, command("ls", exit_code=0), *last))
    assert status_of(job) == status
    assert (job.record.stop.fault if job.record.stop else None) == fault


@pytest.mark.parametrize(
    ("row", "outcome"),
    [
        (thing("command_execution", command="a", status="failed", exit_code=2), "ran"),
        (thing("command_execution", command="a", status="failed"), "failed"),
        (thing("command_execution", command="a", status="declined"), "refused"),
        (thing("mcp_tool_call", tool="t", server="s", arguments={}, status="failed"), "failed"),
    ],
)
def test_what_became_of_an_item(row: Row, outcome: str) -> None:
    """A command with a status ran, one that was declined did not."""
    assert [call.outcome for call in calls_of(job_of(FORMAT, lines(THREAD, row, TURN)))] == [
        outcome
    ]


def test_an_item_in_two_lines_is_one_and_a_number_that_comes_again_is_another() -> None:
    """A resumed thread numbers its items anew."""
    begun, over = command("a", over=False), command("a", exit_code=0)
    job = job_of(FORMAT, lines(THREAD, begun, over, TURN, THREAD, command("b", exit_code=0), TURN))
    assert commands_of(job) == ["a", "b"]
    assert state_of(job, "executed_commands") == "whole"


@pytest.mark.parametrize(
    "row",
    [
        thing("command_execution", command=["rm", "-r"], status="completed"),
        thing("command_execution", status="completed"),
        thing("a_new_kind", text="x"),
        {"type": "item.completed", "item": "text"},
        {"type": "item.completed"},
        {"type": ["x"], "item": {"id": "1"}},
        command("rm", over=False),
        call("c", cmd="rm"),
    ],
)
def test_an_item_that_cannot_be_read_is_missed(row: Row) -> None:
    """What is of no known shape may have been a command."""
    assert state_of(job_of(FORMAT, lines(THREAD, row, TURN)), "executed_commands") == "partial"


def test_what_was_asked_is_not_in_the_stream() -> None:
    """The request is no event of the stream, so a rule about it is an error and not failed."""
    assert state_of(job_of(FORMAT, STREAM), "task_description") == "unavailable"
