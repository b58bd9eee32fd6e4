"""mini-swe-agent: its three layouts, fact by fact."""

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

FORMAT = "mini-swe-agent"
SAMPLES = [golden(FORMAT, f"{name}.json") for name in ("chat", "limit", "v2")]
SYSTEM: Row = {"role": "system", "content": "One command in ```mswea_bash_command at a time."}
ASKED: Row = {"role": "user", "content": "Mend nginx."}


def said(text: JsonValue, **more: JsonValue) -> Row:
    return {"role": "assistant", "content": text, **more}


def block(command: str, fence: str = "bash") -> Row:
    return said(f"I try.\n\n```{fence}\n{command}\n```\n")


def back(text: JsonValue, **extra: JsonValue) -> Row:
    return {"role": "user", "content": text, **({"extra": extra} if extra else {})}


def result(code: int, output: str = "") -> Row:
    return back(f"<returncode>{code}</returncode>\n<output>\n{output}</output>")


def chat(*messages: Row) -> bytes:
    return json.dumps([SYSTEM, ASKED, *messages]).encode()


def file(*messages: Row, status: str | None = "Submitted", **info: JsonValue) -> bytes:
    about: Row = {"exit_status": status, "mini_version": "2.0.0", **info}
    content: Row = {
        "info": about,
        "messages": [SYSTEM, ASKED, *messages],
        "trajectory_format": "mini-swe-agent-1.1",
    }
    return json.dumps(content).encode()


def acting(*commands: str, **more: JsonValue) -> Row:
    actions: list[JsonValue] = [
        {"command": command, "tool_call_id": f"t{number}"}
        for number, command in enumerate(commands)
    ]
    return said("", extra={"actions": actions, "timestamp": 1767261600.5}, **more)


def tool(number: int, **extra: JsonValue) -> Row:
    return {"role": "tool", "tool_call_id": f"t{number}", "content": "", "extra": extra}


SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


@pytest.mark.parametrize("fence", ["bash", "mswea_bash_command"])
def test_a_command_is_a_fenced_block(fence: str) -> None:
    """In the first two layouts a command is a fenced block, bash or mswea_bash_command."""
    job = job_of(FORMAT, chat(block("nginx -t\nid", fence), result(1, "bad\n")))
    [call] = calls_of(job)
    assert (call.kind, call.command, call.outcome) == ("shell", "nginx -t\nid", "ran")
    assert (call.exit_code, call.output) == (1, "bad")


def test_a_command_may_stand_in_a_tag() -> None:
    """The variant for models that write XML."""
    words = "<mswea_bash_command>uptime</mswea_bash_command>"
    assert commands_of(job_of(FORMAT, chat(said(words), result(0)))) == ["uptime"]


def test_blocks_of_other_languages_are_no_commands() -> None:
    """Only the agent's own fences count, and only closed ones."""
    words = "```bashrc\na\n```\n```python\nb\n```\n```bash\nc"
    assert commands_of(job_of(FORMAT, chat(said(words), back("again")))) == []


def test_content_is_a_text_or_a_list_of_parts() -> None:
    """`content` can be a string or a list of {type: text}."""
    part: JsonValue = [{"type": "text", "text": "```bash\nid\n```"}]
    answer: JsonValue = [{"type": "text", "text": "<returncode>0</returncode><output>x</output>"}]
    [call] = calls_of(job_of(FORMAT, chat(said(part), back(answer))))
    assert (call.command, call.exit_code, call.output) == ("id", 0, "x")


def test_more_than_one_block_is_refused() -> None:
    """The harness runs a message with exactly one block; others never ran."""
    job = job_of(FORMAT, chat(said("```bash\na\n```\n```bash\nb\n```"), back("EXACTLY ONE action")))
    assert [call.outcome for call in calls_of(job)] == ["refused", "refused"]
    assert state_of(job, "tool_calls") == "partial"  # it has no end


def test_a_result_without_a_command_is_a_gap() -> None:
    """A command that stands in the agent's words in some other way is told to be missing."""
    job = job_of(FORMAT, file(said("$ id"), result(0, "root\n")))
    assert commands_of(job) == []
    assert state_of(job, "executed_commands") == "partial"
    assert state_of(job, "write_file") == "whole"


def test_a_timeout_is_told_in_words() -> None:
    """Version 1 says that a command timed out with a message of its own."""
    words = "The last command <command>x</command> timed out and has been killed.\n"
    words += "<output>\n1\n</output>"
    [call] = calls_of(job_of(FORMAT, chat(block("x"), back(words))))
    assert (call.outcome, call.output) == ("timed_out", "1")


def test_what_a_user_turned_down_was_not_run() -> None:
    """In confirm mode the user may reject a command; what he says is a message of his."""
    words = "Command not executed. The user rejected your command with the following message: no"
    job = job_of(FORMAT, chat(block("reboot"), back(words)))
    assert [call.outcome for call in calls_of(job)] == ["refused"]
    assert [message.body for message in job.record.ticket.messages] == [words]


def test_a_printed_refusal_does_not_hide_a_command() -> None:
    """Output always stands behind its return code: it cannot be taken for the harness's word."""
    [call] = calls_of(job_of(FORMAT, chat(block("x"), result(0, "Command not executed. rejected"))))
    assert call.outcome == "ran"

    last = [block(f"{SUBMIT}; rm -rf /srv"), back("Command not executed. rejected")]
    for data in (file(*last), chat(*last)):
        assert [call.outcome for call in calls_of(job_of(FORMAT, data))] == ["ran"]


def test_an_interrupted_command_had_begun() -> None:
    """A user may interrupt a command that runs."""
    job = job_of(FORMAT, file(block("sleep 9"), back("Interrupted by user: stop"), status=None))
    assert [call.outcome for call in calls_of(job)] == ["failed"]
    later = job_of(
        FORMAT,
        file(
            acting("sleep 9", "id"),
            tool(0, returncode=-1, exception_info="action was not executed"),
            tool(1, returncode=-1, exception_info="action was not executed"),
            back("Interrupted by user: stop", interrupt_type="UserInterruption"),
        ),
    )
    assert [call.outcome for call in calls_of(later)] == ["failed", "refused"]


def test_a_bare_list_ends_with_what_was_submitted() -> None:
    """The last message behind the final command is what it printed, without a return code."""
    job = job_of(FORMAT, chat(block(SUBMIT), back("diff --git")))
    assert status_of(job) == "completed"
    assert calls_of(job)[0].output == "diff --git"
    for more in ([result(0)], []):
        going = job_of(FORMAT, chat(block(SUBMIT), *more))
        assert status_of(going) == "failed"
        assert going.record.stop is not None
        assert going.record.stop.reason == "the transcript ends before the agent did"


@pytest.mark.parametrize(
    ("word", "status", "fault"),
    [
        ("Submitted", "completed", None),
        ("LimitsExceeded", "timed_out", "agent"),
        ("TimeExceeded", "timed_out", "agent"),
        ("ContextWindowExceededError", "timed_out", "agent"),
        ("UserInterruption", "cancelled", "operator"),
        ("RepeatedFormatError", "failed", "agent"),
        ("AuthenticationError", "failed", "infrastructure"),
        (None, "failed", "infrastructure"),
        ("", "failed", "infrastructure"),
    ],
)
def test_the_exit_status_says_how_it_ended(
    word: str | None, status: str, fault: str | None
) -> None:
    """Exit status in `info.exit_status`: Submitted, LimitsExceeded and so on."""
    job = job_of(FORMAT, file(block("id"), result(0), status=word))
    assert status_of(job) == status
    stop = job.record.stop
    assert (stop.fault if stop else None) == fault
    assert task_of(job).stop_reason == (word or None)
    assert (state_of(job, "executed_commands") == "whole") == bool(word)


def test_version_2_has_actions_results_and_times() -> None:
    """`extra.actions[].command`, `extra.returncode`, `extra.timestamp` as a unix float."""
    job = job_of(
        FORMAT,
        file(
            said("I look.", extra={"actions": [{"command": "id"}], "timestamp": 1767261600.5}),
            back("whatever", returncode=3, raw_output="out", timestamp=1767261601.25),
        ),
    )
    [call] = calls_of(job)
    assert (call.command, call.exit_code, call.output) == ("id", 3, "out")
    assert call.model_dump(mode="json")["started_at"] == "2026-01-01T10:00:00.500000Z"
    assert call.model_dump(mode="json")["ended_at"] == "2026-01-01T10:00:01.250000Z"
    assert state_of(job, "times") == "whole"
    assert state_of(job_of(FORMAT, SAMPLES[0]), "times") == "unavailable"


def test_blocks_do_not_count_where_there_are_actions() -> None:
    """A message that names its actions is not read for blocks again."""
    message = said("```bash\nid\n```", extra={"actions": [{"command": "id"}]})
    assert commands_of(job_of(FORMAT, file(message, back("", returncode=0)))) == ["id"]


def test_tool_call_models_answer_with_tool_messages() -> None:
    """role: tool, with the call's id; several in one message; ids that come again."""
    job = job_of(
        FORMAT,
        file(
            acting("a", "b"),
            tool(1, returncode=1),
            tool(0, returncode=0),
            acting("c"),
            tool(0, returncode=-1, exception_info="died", exception_type="OSError"),
        ),
    )
    assert [(call.id, call.command, call.outcome, call.exit_code) for call in calls_of(job)] == [
        ("t0", "a", "ran", 0),
        ("t1", "b", "ran", 1),
        ("t0#2", "c", "failed", None),
    ]


def test_the_responses_interface_has_items() -> None:
    """The other chat interface: an object `response` and `function_call_output` items."""
    response: Row = {
        "object": "response",
        "output": [
            {"type": "message", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "f1", "name": "bash", "arguments": "{}"},
        ],
        "usage": {"input_tokens": 7, "output_tokens": 2},
        "extra": {"actions": [{"command": "id", "tool_call_id": "f1"}]},
    }
    output: Row = {
        "type": "function_call_output",
        "call_id": "f1",
        "output": "<returncode>0</returncode>\n<output>\nroot\n</output>",
        "extra": {"returncode": 0},
    }
    job = job_of(FORMAT, file(response, output))
    [call] = calls_of(job)
    assert (call.command, call.exit_code, call.output) == ("id", 0, "root")
    assert [message.text for message in task_of(job).messages] == ["I look."]
    usage = task_of(job).usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (7, 2)


def test_calls_that_the_harness_could_not_read_never_ran() -> None:
    """A tool call without an action was turned down as a whole message."""
    calls: JsonValue = [
        {"id": "a", "function": {"name": "bash", "arguments": '{"command": "reboot"}'}},
        {"id": "b", "function": {"name": "browse", "arguments": "no JSON"}},
    ]
    wrong = back("Unknown tool 'browse'.", interrupt_type="FormatError")
    job = job_of(FORMAT, file(said("", tool_calls=calls), wrong))
    assert [(call.kind, call.tool, call.outcome) for call in calls_of(job)] == [
        ("shell", "bash", "refused"),
        ("other", "browse", "refused"),
    ]
    assert job.record.ticket.messages == ()


def test_the_command_that_submits_has_no_result() -> None:
    """It ran, and what stands behind it in the same message did not."""
    end: Row = {"role": "exit", "content": "done", "extra": {"exit_status": "Submitted"}}
    job = job_of(FORMAT, file(acting("id", SUBMIT, "reboot"), end, status=None))
    assert status_of(job) == "completed"
    assert [call.outcome for call in calls_of(job)] == ["ran", "ran", "refused"]
    padded = job_of(
        FORMAT,
        file(
            acting("id", "./submit", "reboot"),
            tool(0, returncode=0),
            tool(1, returncode=-1, exception_info="action was not executed"),
            tool(2, returncode=-1, exception_info="action was not executed"),
            end,
        ),
    )
    assert [call.outcome for call in calls_of(padded)] == ["ran", "ran", "refused"]
    unknown = job_of(FORMAT, file(acting("./a", "./b"), end))
    assert state_of(unknown, "executed_commands") == "partial"


def test_a_users_own_command_is_not_the_agents() -> None:
    """In human mode a user types commands himself."""
    typed = back("User command: \n```bash\nreboot\n```", actions=[{"command": "reboot"}])
    answer = back("x", returncode=0, raw_output="")
    job = job_of(FORMAT, file(typed, answer, block("id"), result(0)))
    assert commands_of(job) == ["id"]
    assert state_of(job, "executed_commands") == "whole"


def test_a_call_without_a_result_may_not_have_run() -> None:
    """Where the agent goes on without one, the record says so."""
    job = job_of(FORMAT, file(acting("a", "b"), tool(0, returncode=0), acting("c")))
    assert state_of(job, "executed_commands") == "partial"


def test_the_cost_is_the_messages_or_the_runs() -> None:
    """`extra.cost` of each message counts, else `info.model_stats.instance_cost`."""
    stats: JsonValue = {"instance_cost": 2.5}
    usage = task_of(job_of(FORMAT, file(block("id"), result(0), model_stats=stats))).usage
    assert usage is not None and usage.cost_usd == 2.5
    paid = [said("a", extra={"cost": 0.5}), said("b", extra={"cost": 0.25})]
    usage = task_of(job_of(FORMAT, file(*paid, model_stats=stats))).usage
    assert usage is not None and usage.cost_usd == 0.75


def test_many_open_fences_cost_little() -> None:
    """Blocks are found in one pass."""
    for words in ("```bash x ", "<mswea_bash_command>", "```bash\n"):
        job = job_of(FORMAT, chat(said(words * 20_000), back("again")))
        assert {call.outcome for call in calls_of(job)} <= {"refused"}
    job = job_of(FORMAT, chat(block("x"), back("<output>" * 200_000)))
    assert len(calls_of(job)) == 1


def test_what_is_no_trajectory_is_refused() -> None:
    """Chats of others are not known; a file without messages cannot be read."""
    for data in (b"", b"{}", b"[]", b'[{"role": "user", "content": "hello"}]', b"no JSON"):
        assert not knows(FORMAT, data)
    with pytest.raises(InvalidInput):
        job_of(FORMAT, b'{"info": {"mini_version": "2.0.0"}}')
