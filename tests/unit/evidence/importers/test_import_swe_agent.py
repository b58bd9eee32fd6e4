"""SWE-agent: trajectories and demonstrations, fact by fact."""

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

FORMAT = "swe-agent"
SAMPLES = [golden(FORMAT, name) for name in ("stopped.traj", "history.traj")]


def step(action: str, observation: str = "ok", **more: JsonValue) -> Row:
    return {
        "action": action,
        "observation": observation,
        "response": "I try.",
        "thought": "I try.",
        "execution_time": 0.5,
        "state": {"working_dir": "/"},
        **more,
    }


def file(*steps: Row, **info: JsonValue) -> bytes:
    content: Row = {"environment": "main", "trajectory": list(steps), "history": []}
    return json.dumps(content | {"info": {"exit_status": "submitted"} | info}).encode()


def message(role: str, content: JsonValue, **more: JsonValue) -> Row:
    return {"role": role, "content": content, "agent": "main", **more}


def history(*messages: Row) -> bytes:
    return json.dumps({"history": list(messages)}).encode()


def test_every_action_is_given_to_the_shell() -> None:
    """`action` mixes shell with special commands: open, find_file and others are programs in it."""
    job = job_of(FORMAT, file(step("find_file a.py"), step("open /a"), step("python3 /a | tail")))
    assert commands_of(job) == ["find_file a.py", "open /a", "python3 /a | tail"]
    assert [call.tool for call in calls_of(job)] == ["find_file", "open", "bash"]


def test_the_editor_is_a_file_tool() -> None:
    """str_replace_editor creates, edits or shows a file, and is no shell command."""
    job = job_of(
        FORMAT,
        file(
            step("str_replace_editor create '/a b' --file_text 'x\ny'"),
            step("str_replace_editor insert /c --insert_line 1 --new_str z"),
            step("str_replace_editor undo_edit /c"),
            step("str_replace_editor view /c --view_range 1 2"),
        ),
    )
    assert [(call.kind, call.path) for call in calls_of(job)] == [
        ("write_file", "/a b"),
        ("update_file", "/c"),
        ("update_file", "/c"),
        ("other", ""),
    ]
    assert state_of(job, "update_file") == "whole"


@pytest.mark.parametrize("action", ["str_replace_editor", "str_replace_editor create 'x"])
def test_an_editor_call_that_cannot_be_read_is_what_the_shell_got(action: str) -> None:
    """Then it is the text that the shell was given."""
    assert commands_of(job_of(FORMAT, file(step(action)))) == [action]


@pytest.mark.parametrize("action", ["edit 1:2\nx\nend_of_edit", "create a.py", "insert x"])
def test_edits_of_the_open_file_leave_a_gap(action: str) -> None:
    """They name no file: rules on edited files cannot be judged by such a record alone."""
    job = job_of(FORMAT, file(step(action)))
    assert commands_of(job) == [action]
    assert state_of(job, "update_file") == state_of(job, "write_file") == "partial"
    assert state_of(job, "executed_commands") == "whole"


@pytest.mark.parametrize("state", ['{"open_file": "n/a"}', {"open_file": "n/a"}, None, 7])
def test_the_state_is_a_text_or_an_object(state: JsonValue) -> None:
    """`state` is a JSON string in old files and an object in new ones; neither disturbs."""
    assert commands_of(job_of(FORMAT, file(step("id", state=state)))) == ["id"]


def test_observations_keep_their_line_ends() -> None:
    r"""Observations contain \r\n."""
    [call] = calls_of(job_of(FORMAT, file(step("id", "a\r\nb"))))
    assert call.output == "a\r\nb"


def test_there_are_no_times() -> None:
    """No timestamps: rules on turns cannot be judged."""
    assert state_of(job_of(FORMAT, SAMPLES[0]), "times") == "unavailable"


def test_a_blocked_command_never_ran() -> None:
    """A step without any result that took no time was turned down by the harness."""
    job = job_of(
        FORMAT,
        file(
            step("vim a", "", execution_time=0.0),
            step("true", "", execution_time=0.01),
            step("exit", "Exited", execution_time=0.0),
            {"action": "old", "observation": "", "response": ""},
        ),
    )
    assert [call.outcome for call in calls_of(job)] == ["refused", "ran", "ran", "ran"]


@pytest.mark.parametrize(
    ("observation", "outcome"),
    [
        ("The command 'x' was cancelled because it took more than 30 seconds. Try.", "timed_out"),
        ("\nEXECUTION TIMED OUT", "timed_out"),
        ("\nCOMMAND FAILED TO EXECUTE. RESTARTING PROCESS.", "failed"),
        ("It was cancelled because it took more than 30 seconds.", "ran"),
        ("", "ran"),
    ],
)
def test_outcomes_stand_in_the_observation(observation: str, outcome: str) -> None:
    """What the harness says in place of a command's output."""
    [call] = calls_of(job_of(FORMAT, file(step("x", observation))))
    assert call.outcome == outcome


def test_a_demonstration_may_have_only_the_history() -> None:
    """Demonstrations may have only `history`: actions and the observations behind them."""
    job = job_of(FORMAT, SAMPLES[1])
    assert commands_of(job)[0] == "open /etc/crontab"
    assert status_of(job) == "completed"
    empty = json.loads(SAMPLES[1]) | {"trajectory": []}
    assert commands_of(job_of(FORMAT, json.dumps(empty).encode())) == commands_of(job)


def test_the_trajectory_counts_and_not_the_history() -> None:
    """Both hold the same steps; they count once."""
    both = json.loads(SAMPLES[1]) | {"trajectory": [step("id")], "info": {}}
    assert commands_of(job_of(FORMAT, json.dumps(both).encode())) == ["id"]


def test_examples_shown_to_the_agent_are_none_of_its_work() -> None:
    """Demonstrations inside of a history are marked."""
    shown = {"is_demo": True}
    job = job_of(
        FORMAT,
        history(
            message("user", "An old ticket.", **shown),
            message("assistant", "a", action="reboot", **shown),
            message("tool", "gone", **shown),
            message("user", "Mend cron.", message_type="observation"),
            message("assistant", "b", action="id", message_type="action"),
            message("user", "root"),
        ),
    )
    assert commands_of(job) == ["id"]
    assert job.record.ticket.body == "Mend cron."


def test_another_agents_messages_are_a_task_of_their_own() -> None:
    """Each message of a history names its agent."""
    job = job_of(
        FORMAT,
        history(
            message("user", "Mend cron."),
            message("assistant", "I ask.", action="ask", agent="main"),
            {"role": "user", "content": "Look at the log.", "agent": "sub"},
            {"role": "assistant", "content": "I look.", "action": "tail /x", "agent": "sub"},
            {"role": "user", "content": "empty", "agent": "sub"},
            message("tool", "empty"),
            message("assistant", "Done."),
        ),
    )
    assert [(task.id, task.description) for task in job.record.tasks] == [
        ("main", "Mend cron."),
        ("sub", "Look at the log."),
    ]
    assert [call.command for call in task_of(job, "sub").tool_calls] == ["tail /x"]
    assert status_of(job) == "completed"


@pytest.mark.parametrize(
    ("word", "status", "fault"),
    [
        ("submitted", "completed", None),
        ("exit_command", "completed", None),
        ("exit_cost", "timed_out", "agent"),
        ("submitted (exit_cost)", "timed_out", "agent"),
        ("submitted (exit_context)", "timed_out", "agent"),
        ("exit_total_execution_time", "timed_out", "agent"),
        ("exit_command_timeout", "timed_out", "agent"),
        ("exit_format", "failed", "agent"),
        ("exit_forfeit", "failed", "agent"),
        ("exit_api", "failed", "infrastructure"),
        ("submitted (exit_environment_error)", "failed", "infrastructure"),
        (None, "failed", "infrastructure"),
    ],
)
def test_the_exit_status_says_how_it_ended(
    word: str | None, status: str, fault: str | None
) -> None:
    """`info.exit_status`; what the harness submits for a stopped agent is no success."""
    job = job_of(FORMAT, file(step("id"), exit_status=word))
    assert status_of(job) == status
    stop = job.record.stop
    assert (stop.fault if stop else None) == fault
    assert task_of(job).stop_reason == word


def test_the_harness_words_are_not_the_agents() -> None:
    """The step that is added when an agent is stopped is no message of the agent."""
    last = step("", "Exited", response="Exit due to cost limit", thought="Exit due to cost limit")
    job = job_of(FORMAT, file(step("id"), last, exit_status="exit_cost"))
    assert [message.text for message in task_of(job).messages] == ["I try."]


def test_what_was_used() -> None:
    """`info.model_stats`; the model stands in a configuration that may be a text of JSON."""
    for config in ({"agent": {"model": {"name": "m"}}}, '{"agent": {"model": {"name": "m"}}}'):
        stats: JsonValue = {"instance_cost": 0.5, "tokens_sent": 7, "tokens_received": 2}
        content = json.loads(file(step("id"), model_stats=stats)) | {"replay_config": config}
        job = job_of(FORMAT, json.dumps(content).encode())
        usage = task_of(job).usage
        assert usage is not None
        assert (usage.model, usage.input_tokens, usage.output_tokens) == ("m", 7, 2)
        assert usage.cost_usd == 0.5
        assert job.agent == "SWE-agent, m"


def test_what_is_no_trajectory_is_refused() -> None:
    """Other files are not known; a history that cannot be reached cannot be read."""
    for data in (b"", b"{}", b"[]", b'{"trajectory": []}', b'{"history": []}', b"no JSON"):
        assert not knows(FORMAT, data)
    with pytest.raises(InvalidInput):
        job_of(FORMAT, b"")
