"""OpenHands: events of both versions and benchmark outputs, fact by fact."""

from __future__ import annotations

import json

import pytest
from pydantic import JsonValue
from tests.unit.evidence.importers.in_memory import (
    Row,
    assert_cut_is_seen,
    calls_of,
    commands_of,
    golden,
    job_of,
    knows,
    lines,
    read,
    state_of,
    status_of,
    task_of,
)

from opsdrill.errors import InvalidInput

FORMAT = "openhands"
EVENTS = golden(FORMAT, "events.json")
SDK = golden(FORMAT, "sdk.jsonl")
OUTPUT = golden(FORMAT, "output.jsonl")


# -- version 0 --------------------------------------------------------------------------------


def event(id: int, source: str = "agent", /, **more: JsonValue) -> Row:
    return {"id": id, "timestamp": "2026-02-01T09:00:00.000001", "source": source, **more}


ASKED = event(1, "user", action="message", args={"content": "Mend nginx."})
FINISH = event(90, action="finish", args={"final_thought": "Done.", "outputs": {}})


def act(id: int, action: str, source: str = "agent", /, **args: JsonValue) -> Row:
    return event(id, source, action=action, args={"thought": "", **args})


def back(
    id: int, cause: int | None, observation: str = "run", content: str = "", /, **extras: JsonValue
) -> Row:
    return event(id, cause=cause, observation=observation, content=content, extras=extras)


def meta(code: int, suffix: str = "") -> Row:
    return {"exit_code": code, "suffix": suffix}


def events(*more: Row) -> bytes:
    return json.dumps([ASKED, *more]).encode()


def test_a_list_of_events_is_a_job() -> None:
    """A bare list, or JSON lines of the same events."""
    run = [act(2, "run", command="id"), back(3, 2, metadata=meta(0)), FINISH]
    for data in (events(*run), lines(ASKED, *run)):
        job = job_of(FORMAT, data)
        [call, _] = calls_of(job)
        assert (call.kind, call.command, call.exit_code) == ("shell", "id", 0)
        assert status_of(job) == "completed"


def test_times_have_no_zone() -> None:
    """`timestamp` is naive: taken as UTC, with a warning."""
    job = job_of(FORMAT, EVENTS)
    assert state_of(job, "times") == "whole"
    assert "its times have no zone; they are taken as UTC" in job.warnings


def test_a_result_names_its_action() -> None:
    """`cause` is the action's id; ids are not contiguous, and results may change places."""
    job = job_of(
        FORMAT,
        events(
            act(7, "run", command="a"),
            act(30, "run", command="b"),
            back(31, 30, "run", "B", metadata=meta(2)),
            back(44, 7, "run", "A", metadata=meta(1)),
            FINISH,
        ),
    )
    found = [(call.command, call.exit_code, call.output) for call in calls_of(job)[:2]]
    assert found == [("a", 1, "A"), ("b", 2, "B")]


def test_a_result_without_its_action_is_a_gap() -> None:
    """Then a call is missing."""
    assert state_of(job_of(FORMAT, events(back(3, 2), FINISH)), "executed_commands") == "partial"


@pytest.mark.parametrize(
    ("action", "args", "kind"),
    [
        ("edit", {"path": "/a", "command": "create", "file_text": "x"}, "write_file"),
        ("edit", {"path": "/a", "command": "str_replace"}, "update_file"),
        ("edit", {"path": "/a", "command": "undo_edit"}, "update_file"),
        ("edit", {"path": "/a", "command": "view"}, "other"),
        ("edit", {"path": "/a", "content": "x", "start": 1, "end": -1}, "update_file"),
        ("write", {"path": "/a", "content": "x"}, "write_file"),
        ("read", {"path": "/a"}, "other"),
        ("edit", {}, "other"),
        ("run", {"command": ""}, "other"),
        ("run", {"command": "C-c", "is_input": True}, "other"),
        ("run_ipython", {"code": "1"}, "other"),
        ("browse", {"url": "x"}, "other"),
    ],
)
def test_what_actions_do(action: str, args: Row, kind: str) -> None:
    """Edits are `edit` and `write` with args.path; input to a running program is no command."""
    job = job_of(FORMAT, events(act(2, action, **args), back(3, 2, action), FINISH))
    assert calls_of(job)[0].kind == kind


def test_mcp_calls_do_not_name_their_server() -> None:
    """`call_tool_mcp`: the tool is known, the server is not, and the record says so."""
    call = act(2, "call_tool_mcp", name="query", arguments={"panel": 7})
    job = job_of(FORMAT, events(call, back(3, 2, "mcp", '{"isError": true}'), FINISH))
    [made, _] = calls_of(job)
    assert (made.kind, made.tool, made.server) == ("mcp", "query", None)
    assert (made.arguments, made.outcome) == ({"panel": 7}, "failed")
    assert state_of(job, "use_mcp_tool") == "partial"
    assert state_of(job, "tool_calls") == "whole"


@pytest.mark.parametrize(
    ("result", "outcome", "code"),
    [
        (back(3, 2, metadata=meta(5)), "ran", 5),
        (back(3, 2, exit_code=5), "ran", 5),
        (back(3, 2, metadata=meta(-1)), "ran", None),
        (
            back(3, 2, metadata=meta(-1, "\n[The command timed out after 9 seconds.]")),
            "timed_out",
            None,
        ),
        (
            back(3, 2, metadata=meta(-1, "\n[The command has no new output after 10 s]")),
            "timed_out",
            None,
        ),
        (
            back(3, 2, metadata=meta(-1, '\n[Your command "x" is NOT executed. The previous')),
            "refused",
            None,
        ),
        (back(3, 2, "run", '[Your command "x" is NOT executed.', metadata=meta(0)), "ran", 0),
        (back(3, 2, "user_rejected", "no"), "refused", None),
        (back(3, 2, "error", "ERROR: Cannot execute multiple commands at once."), "refused", None),
        (back(3, 2, "run", "Cannot execute multiple commands", metadata=meta(0)), "ran", 0),
        (back(3, 2, "error", "Action has not been executed: broken"), "failed", None),
    ],
)
def test_what_became_of_a_command(result: Row, outcome: str, code: int | None) -> None:
    """Exit status in the metadata; only the program's own words make a command refused."""
    job = job_of(FORMAT, events(act(2, "run", command="x"), result, FINISH))
    call = calls_of(job)[0]
    assert (call.outcome, call.exit_code) == (outcome, code)


def test_only_the_agents_actions_count() -> None:
    """Commands of users and of the program are none of the agent's."""
    job = job_of(
        FORMAT,
        events(
            act(2, "run", "user", command="reboot"),
            back(3, 2, metadata=meta(0)),
            act(4, "run", "environment", command="git status"),
            back(5, 4, metadata=meta(0)),
            act(6, "recall", "user", query="x"),
            back(7, 6, "recall"),
            act(8, "change_agent_state", agent_state="running"),
            act(9, "think", thought="hm"),
            back(10, 9, "think"),
            FINISH,
        ),
    )
    assert [call.tool for call in calls_of(job)] == ["think", "finish"]
    assert calls_of(job)[0].arguments == {"thought": "hm"}
    assert state_of(job, "executed_commands") == "whole"


def test_a_delegates_events_are_its_own() -> None:
    """Events between a delegation and its observation; its end is not the job's."""
    job = job_of(
        FORMAT,
        events(
            act(2, "delegate", agent="B", inputs={"task": "Look."}),
            act(3, "run", command="tail"),
            back(4, 3, metadata=meta(0)),
            act(5, "finish", final_thought="Seen."),
            back(6, 2, "delegate"),
        ),
    )
    assert [(task.id, task.description) for task in job.record.tasks] == [
        ("main", "Mend nginx."),
        ("delegate-2", "Look."),
    ]
    assert status_of(job) == "failed"
    assert [call.tool for call in task_of(job).tool_calls] == ["delegate"]


def state(name: str, reason: str = "") -> Row:
    return back(80, None, "agent_state_changed", "", agent_state=name, reason=reason)


@pytest.mark.parametrize(
    ("ends", "status", "fault"),
    [
        ([FINISH], "completed", None),
        ([FINISH, state("finished"), state("stopped")], "completed", None),
        ([state("finished")], "completed", None),
        ([act(9, "message", content="Which?", wait_for_response=True)], "completed", None),
        ([act(9, "reject", outputs={"reason": "No."})], "failed", "agent"),
        ([state("stopped")], "cancelled", "operator"),
        ([state("error", "RuntimeError: Agent reached maximum iteration.")], "timed_out", "agent"),
        ([state("error", "Task budget exceeded")], "timed_out", "agent"),
        ([state("error", "LLMContextWindowExceedError")], "timed_out", "agent"),
        ([state("error", "AgentStuckInLoopError: x")], "failed", "agent"),
        ([state("error", "STATUS$ERROR_LLM_AUTHENTICATION")], "failed", "infrastructure"),
        ([FINISH, ASKED], "failed", "infrastructure"),
        ([state("paused")], "failed", "infrastructure"),
        ([], "failed", "infrastructure"),
    ],
)
def test_how_it_ends(ends: list[Row], status: str, fault: str | None) -> None:
    """By finish, by an answer, or as the program says; the last word counts."""
    job = job_of(FORMAT, events(act(2, "run", command="x"), back(3, 2, metadata=meta(0)), *ends))
    stop = job.record.stop
    assert (status_of(job), stop.fault if stop else None) == (status, fault)


def test_costs_are_counted_up() -> None:
    """`llm_metrics` of an event are those of all before it too."""

    def metered(cost: float) -> Row:
        return {"llm_metrics": {"accumulated_cost": cost, "accumulated_token_usage": {}}}

    job = job_of(FORMAT, events(act(2, "think") | metered(0.5), FINISH | metered(0.75)))
    usage = task_of(job).usage
    assert usage is not None and usage.cost_usd == 0.75


# -- benchmark outputs ------------------------------------------------------------------------


def output(name: str, *history: JsonValue, **more: JsonValue) -> Row:
    return {"instance_id": name, "metadata": {}, "history": list(history), **more}


def test_each_output_is_a_job() -> None:
    """`history` inside of output.jsonl: several jobs in one file, told apart by their instance."""
    jobs = read(FORMAT, OUTPUT)
    assert [job.name for job in jobs] == ["web-01-disk", "db-01-slow", "mail-01-cron"]
    assert [status_of(job) for job in jobs] == ["completed", "timed_out", "failed"]
    twice = read(FORMAT, lines(output("a", ASKED, FINISH), output("a", ASKED, FINISH)))
    assert [job.name for job in twice] == ["a", "a, line 2"]


def test_older_histories_pair_actions_and_observations() -> None:
    """Each entry may be a list of two events."""
    pair: JsonValue = [act(2, "run", command="id"), back(3, 2, metadata=meta(0))]
    assert commands_of(job_of(FORMAT, lines(output("a", [ASKED], pair)))) == ["id"]


def test_the_error_of_an_output_counts_if_the_agent_did_not_finish() -> None:
    """`error` says why a run stopped."""
    answer = act(9, "message", content="Which?")
    stopped = output("a", ASKED, answer, error="RuntimeError: Agent reached maximum iteration.")
    assert status_of(job_of(FORMAT, lines(stopped))) == "timed_out"
    finished = output("a", ASKED, FINISH, error="RuntimeError: no patch")
    assert status_of(job_of(FORMAT, lines(finished))) == "completed"


def test_an_output_that_cannot_be_read_is_a_job_of_which_nothing_is_known() -> None:
    """Its neighbours are read; words of others are left out with a warning."""
    data = lines(output("a", ASKED, FINISH)) + b'{"instance_id": "b", "hist\n'
    data += lines(output("c", ASKED, FINISH)) + b"done in 3 s\n"
    jobs = read(FORMAT, data)
    assert [job.name for job in jobs] == ["a", "line 2", "c"]
    assert [status_of(job) for job in jobs] == ["completed", "failed", "completed"]
    assert state_of(jobs[1], "executed_commands") == "partial"
    assert state_of(jobs[2], "executed_commands") == "whole"
    assert "a line holds no JSON and was left out" in jobs[2].warnings


def test_an_output_over_several_lines() -> None:
    """One that was laid out for people."""
    run = [act(2, "run", command="id"), back(3, 2, metadata=meta(0))]
    data = json.dumps(output("a", ASKED, *run, FINISH), indent=1).encode()
    job = job_of(FORMAT, data)
    assert (job.name, commands_of(job), status_of(job)) == ("a", ["id"], "completed")
    assert_cut_is_seen(FORMAT, data, 29)


def test_what_was_asked_may_stand_beside_the_events() -> None:
    """`instruction` describes the task where no event does."""
    job = job_of(FORMAT, lines(output("a", instruction="Mend it.", error="x")))
    assert job.record.ticket.body == task_of(job).description == "Mend it."


# -- the SDK ----------------------------------------------------------------------------------


def of_kind(id: str, kind: str, source: str = "agent", /, **more: JsonValue) -> Row:
    return {"id": id, "timestamp": "2026-02-01T09:00:00", "source": source, "kind": kind, **more}


def message(source: str, text: str) -> Row:
    content: JsonValue = [{"type": "text", "text": text}]
    return of_kind("m", "MessageEvent", source, llm_message={"role": source, "content": content})


def does(id: str, kind: str, tool: str = "terminal", /, **action: JsonValue) -> Row:
    return of_kind(
        id,
        "ActionEvent",
        thought=[],
        action={**action, "kind": kind},
        tool_name=tool,
        tool_call_id=f"t-{id}",
        tool_call={"name": tool, "arguments": "{}"},
    )


def seen(id: str, kind: str = "TerminalObservation", text: str = "", /, **more: JsonValue) -> Row:
    content: JsonValue = [{"type": "text", "text": text}]
    observation: Row = {"content": content, "is_error": False, "kind": kind, **more}
    return of_kind(
        f"o-{id}",
        "ObservationEvent",
        "environment",
        observation=observation,
        action_id=id,
        tool_name="x",
        tool_call_id=f"t-{id}",
    )


def update(key: str, value: JsonValue) -> Row:
    return of_kind("u", "ConversationStateUpdateEvent", "environment", key=key, value=value)


ASKED_SDK = message("user", "Mend nginx.")
DONE_SDK = does("f", "FinishAction", "finish", message="Done.")


def sdk(*more: Row) -> bytes:
    return lines(ASKED_SDK, *more)


@pytest.mark.parametrize("kind", ["TerminalAction", "ExecuteBashAction"])
def test_terminal_actions_are_commands(kind: str) -> None:
    """`TerminalAction`, `ExecuteBashAction` in older builds; a list of events reads the same."""
    run = [does("a", kind, command="id"), seen("a", exit_code=3), DONE_SDK]
    for data in (sdk(*run), json.dumps([ASKED_SDK, *run], indent=1).encode()):
        [call, _] = calls_of(job_of(FORMAT, data))
        assert (call.kind, call.command, call.exit_code) == ("shell", "id", 3)


def test_older_observations_have_a_text() -> None:
    """`output` and `error` in the first builds."""
    older: Row = {"content": None, "output": "x", "error": True, "exit_code": 1}
    [call, _] = calls_of(
        job_of(
            FORMAT, sdk(does("a", "ExecuteBashAction", command="id"), seen("a", **older), DONE_SDK)
        )
    )
    assert (call.output, call.exit_code, call.outcome) == ("x", 1, "ran")


@pytest.mark.parametrize(
    ("result", "outcome", "code"),
    [
        (
            seen("a", "TerminalObservation", "Cannot execute multiple commands at once.\n",
                 is_error=True, exit_code=None, metadata=meta(-1)),
            "refused", None,
        ),
        (
            seen("a", "TerminalObservation", "", is_error=True, exit_code=-1,
                 metadata=meta(-1, '\n[Your command "x" is NOT executed. The previous command')),
            "refused", None,
        ),
        (
            seen("a", "TerminalObservation", "Cannot execute multiple commands at once",
                 exit_code=0, metadata=meta(0)),
            "ran", 0,
        ),
        (seen("a", exit_code=None, is_error=True), "failed", None),
        (seen("a", exit_code=None, metadata=meta(4)), "ran", 4),
        (seen("a", exit_code=-1, timeout=True), "timed_out", None),
        (
            seen("a", exit_code=-1, metadata=meta(-1, "\n[The command timed out after 1 s")),
            "timed_out", None,
        ),
        (
            of_kind("r", "UserRejectObservation", "environment", rejection_reason="no",
                    action_id="a", tool_call_id="t-a"),
            "refused", None,
        ),
        (
            of_kind("r", "AgentErrorEvent", error="restarted", tool_name="x", tool_call_id="t-a"),
            "failed", None,
        ),
    ],
)  # fmt: skip
def test_what_became_of_a_terminal_action(result: Row, outcome: str, code: int | None) -> None:
    """Commands that were rejected (no exit code, an error) were never executed."""
    job = job_of(FORMAT, sdk(does("a", "TerminalAction", command="x"), result, DONE_SDK))
    call = calls_of(job)[0]
    assert (call.outcome, call.exit_code) == (outcome, code)


@pytest.mark.parametrize(
    ("kind", "tool", "action", "is_a", "path"),
    [
        (
            "FileEditorAction",
            "file_editor",
            {"command": "create", "path": "/a"},
            "write_file",
            "/a",
        ),
        ("StrReplaceEditorAction", "x", {"command": "insert", "path": "/a"}, "update_file", "/a"),
        ("FileEditorAction", "file_editor", {"command": "view", "path": "/a"}, "other", ""),
        ("WriteFileAction", "write_file", {"file_path": "/a"}, "write_file", "/a"),
        ("EditAction", "edit", {"file_path": "/a"}, "update_file", "/a"),
        ("TerminalAction", "terminal", {"command": "y", "is_input": True}, "other", ""),
        ("TerminalAction", "terminal", {"command": "", "reset": True}, "other", ""),
        ("TaskTrackerAction", "task_tracker", {"command": "plan"}, "other", ""),
        ("NewShellAction", "my_shell", {"command": "id"}, "shell", ""),
    ],
)
def test_what_sdk_actions_do(kind: str, tool: str, action: Row, is_a: str, path: str) -> None:
    """Editors by what their `command` does; input to a running program is no command."""
    job = job_of(FORMAT, sdk(does("a", kind, tool, **action), seen("a", "Observation"), DONE_SDK))
    call = calls_of(job)[0]
    assert (call.kind, call.path, call.tool) == (is_a, path, tool)


def test_a_patch_is_a_call_for_each_file_of_it() -> None:
    """A patch tool changes several files in one action."""
    patch = "*** Begin Patch\n*** Add File: /a\n+x\n*** Update File: /b\n-y\n*** End Patch"
    action = does("a", "ApplyPatchAction", "apply_patch", patch=patch)
    job = job_of(FORMAT, sdk(action, seen("a", "ApplyPatchObservation"), DONE_SDK))
    assert [(call.kind, call.path) for call in calls_of(job)[:2]] == [
        ("write_file", "/a"),
        ("update_file", "/b"),
    ]


def test_sdk_mcp_calls() -> None:
    """The tool is known, the server is not."""
    action = does("a", "MCPToolAction", "grafana_query", data={"panel": 7})
    job = job_of(FORMAT, sdk(action, seen("a", "MCPToolObservation", is_error=True), DONE_SDK))
    call = calls_of(job)[0]
    assert (call.kind, call.tool, call.arguments) == ("mcp", "grafana_query", {"panel": 7})
    assert call.outcome == "failed"
    assert state_of(job, "use_mcp_tool") == "partial"


def test_an_action_that_could_not_be_read_was_not_carried_out() -> None:
    """`action` is null; the arguments are those of the model's call."""
    action = of_kind(
        "a",
        "ActionEvent",
        thought=[],
        action=None,
        tool_name="terminal",
        tool_call_id="t-a",
        tool_call={"arguments": '{"command": "rm -rf /"'},
    )
    error = of_kind("r", "AgentErrorEvent", error="bad", tool_name="x", tool_call_id="t-a")
    job = job_of(FORMAT, sdk(action, error, DONE_SDK))
    assert commands_of(job) == []
    assert calls_of(job)[0].arguments == '{"command": "rm -rf /"'


def test_a_result_of_a_missing_action_is_a_gap() -> None:
    """The file may begin in the middle of a conversation."""
    job = job_of(FORMAT, sdk(seen("a"), DONE_SDK))
    assert state_of(job, "executed_commands") == "partial"


def test_another_agents_conversation_is_a_gap() -> None:
    """Its events stand elsewhere."""
    job = job_of(FORMAT, sdk(does("a", "TaskAction", "task", prompt="x"), seen("a", "T"), DONE_SDK))
    assert state_of(job, "executed_commands") == "partial"


def test_calls_behind_acp_are_told_until_they_are_over() -> None:
    """The same call several times; its kind says what it does."""

    def told(id: str, **more: JsonValue) -> Row:
        return of_kind("x", "ACPToolCallEvent", tool_call_id=id, title="T", **more)

    diff: JsonValue = [{"type": "diff", "path": "/a", "old_text": "x", "new_text": "y"}]
    job = job_of(
        FORMAT,
        sdk(
            told("1", status="pending", tool_kind="execute"),
            told("1", status="in_progress", raw_input={"command": "id"}),
            told("1", status="completed", raw_output="root"),
            told("2", status="failed", tool_kind="edit", content=diff, is_error=True),
            told("3", status="pending", tool_kind="execute", raw_input={"command": "reboot"}),
            DONE_SDK,
        ),
    )
    found = [(call.kind, call.command or call.path, call.outcome) for call in calls_of(job)]
    assert ("shell", "id", "ran") in found
    assert ("update_file", "/a", "failed") in found
    assert ("shell", "reboot", "failed") in found
    assert state_of(job, "executed_commands") == "partial"


@pytest.mark.parametrize(
    ("ends", "status", "fault"),
    [
        ([DONE_SDK], "completed", None),
        ([message("agent", "Which?")], "completed", None),
        ([update("execution_status", "finished")], "completed", None),
        ([update("full_state", {"execution_status": "finished"})], "completed", None),
        ([update("execution_status", "stuck")], "failed", "agent"),
        ([update("execution_status", "error")], "failed", "infrastructure"),
        ([of_kind("p", "PauseEvent", "user")], "cancelled", "operator"),
        ([of_kind("p", "ConversationIterationLimitEvent", "environment")], "timed_out", "agent"),
        (
            [
                of_kind("p", "ConversationErrorEvent", "environment", code="MaxIterationsReached"),
                update("execution_status", "error"),
            ],
            "timed_out",
            "agent",
        ),
        (
            [of_kind("p", "ConversationErrorEvent", "environment", code="LLMAuthenticationError")],
            "failed",
            "infrastructure",
        ),
        ([message("agent", "Which?"), message("user", "That.")], "failed", "infrastructure"),
        ([update("execution_status", "running")], "failed", "infrastructure"),
    ],
)
def test_how_a_conversation_ends(ends: list[Row], status: str, fault: str | None) -> None:
    """By finish, by an answer, or as the program says."""
    run = [does("a", "TerminalAction", command="x"), seen("a", exit_code=0)]
    job = job_of(FORMAT, sdk(*run, *ends))
    stop = job.record.stop
    assert (status_of(job), stop.fault if stop else None) == (status, fault)


def test_usage_of_several_models() -> None:
    """Each use of a model counts up on its own; the job's is the sum."""

    def stats(first: int, second: int) -> Row:
        return update(
            "stats",
            {
                "usage_to_metrics": {
                    "default": {"accumulated_token_usage": {"prompt_tokens": first}},
                    "condenser": {"accumulated_token_usage": {"prompt_tokens": second}},
                }
            },
        )

    usage = task_of(job_of(FORMAT, sdk(stats(5, 1), stats(9, 2), DONE_SDK))).usage
    assert usage is not None and usage.input_tokens == 11


# -- all --------------------------------------------------------------------------------------


def test_what_is_none_of_it_is_refused() -> None:
    """Other files are not known."""
    for data in (b"", b"{}", b"[]", b'[{"kind": "x", "source": "y"}]', b'{"history": []}'):
        assert not knows(FORMAT, data)
    with pytest.raises(InvalidInput):
        job_of(FORMAT, b"")
