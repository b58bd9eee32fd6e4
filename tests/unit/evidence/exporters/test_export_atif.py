"""ATIF 1.7, as Harbor's RFC 0001 wants it, from job records."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from opsdrill.evidence.exporters import atif
from opsdrill.model.job import (
    AgentMessage,
    Coverage,
    Job,
    JobRecord,
    Seen,
    Task,
    ToolCall,
    Usage,
)
from opsdrill.model.ticket import Ticket

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def at(seconds: int) -> datetime:
    return NOON + timedelta(seconds=seconds)


def call(id: str, command: str, seconds: int | None, **more: object) -> ToolCall:
    return ToolCall.model_validate(
        {
            "id": id,
            "kind": "shell",
            "arguments": {"command": command},
            "outcome": "ran",
            "started_at": None if seconds is None else at(seconds),
            **more,
        }
    )


def record(*tasks: Task) -> JobRecord:
    return JobRecord(
        format="opsdrill.job/1",
        job=Job(id="j", status="completed", resolution="success"),
        ticket=Ticket(title="Disk full", body="Repair it."),
        tasks=tasks,
        coverage=Coverage(default=Seen(state="whole")),
    )


def task(id: str = "t1", host: str = "web-01", **more: object) -> Task:
    return Task.model_validate({"id": id, "host": host, "status": "completed", "turn": 1, **more})


def exported(*tasks: Task) -> dict[str, object]:
    made = atif.atif(record(*tasks), session="r1", agent="script:x", version="1")
    again: dict[str, object] = json.loads(atif.written(made))
    return again


def steps(*tasks: Task) -> list[dict[str, object]]:
    found = exported(*tasks)["steps"]
    assert isinstance(found, list)
    return found


def test_the_root_names_version_session_and_agent() -> None:
    found = exported(task())
    assert found["schema_version"] == "ATIF-v1.7"
    assert found["session_id"] == "r1"
    assert found["agent"] == {"name": "script:x", "version": "1"}


def test_steps_are_numbered_from_1_and_the_first_is_the_ticket() -> None:
    found = steps(
        task(messages=(AgentMessage(at=at(1), text="a"), AgentMessage(at=at(2), text="b")))
    )
    assert [step["step_id"] for step in found] == [1, 2, 3]
    assert found[0] == {"step_id": 1, "source": "user", "message": "Disk full\n\nRepair it."}


def test_calls_stand_in_the_step_of_the_message_before_them_with_their_results() -> None:
    found = steps(
        task(
            messages=(AgentMessage(at=at(1), text="I look."), AgentMessage(at=at(5), text="Done.")),
            tool_calls=(
                call("c1", "df -h", 2, output="100%", exit_code=0),
                call("c2", "rm /x", 3, outcome="refused"),
            ),
        )
    )
    assert [step["message"] for step in found[1:]] == ["I look.", "Done."]
    made = found[1]["tool_calls"]
    assert isinstance(made, list)
    assert [(one["tool_call_id"], one["function_name"], one["arguments"]) for one in made] == [
        ("c1", "bash", {"command": "df -h"}),
        ("c2", "bash", {"command": "rm /x"}),
    ]
    assert [one["extra"]["outcome"] for one in made] == ["ran", "refused"]
    assert made[0]["extra"]["exit_code"] == 0
    assert found[1]["observation"] == {"results": [{"source_call_id": "c1", "content": "100%"}]}


def test_tasks_of_a_turn_are_told_apart_and_ordered_by_time() -> None:
    found = steps(
        task("t1", "web-01", tool_calls=(call("a", "one", 1), call("b", "three", 3))),
        task("t2", "web-02", tool_calls=(call("c", "two", 2),)),
    )
    assert [step["extra"] for step in found[1:]] == [
        {"task": "t1", "host": "web-01", "turn": 1},
        {"task": "t2", "host": "web-02", "turn": 1},
    ]


def test_without_times_the_order_of_the_record_stays() -> None:
    found = steps(
        task(messages=(AgentMessage(text="later"),), tool_calls=(call("a", "first", None),))
    )
    assert [step["message"] for step in found[1:]] == ["later"]
    assert all("timestamp" not in step for step in found)


def test_usage_is_summed_and_what_nobody_counted_is_left_out() -> None:
    metrics = exported(
        task("t1", usage=Usage(input_tokens=3, output_tokens=1)),
        task("t2", usage=Usage(input_tokens=4)),
    )["final_metrics"]
    assert metrics == {"total_steps": 1, "total_prompt_tokens": 7, "total_completion_tokens": 1}


def test_any_text_can_be_written() -> None:
    hostile = 'a"\\\x00\x1b[31m\u202e\ud800\U0001f600'
    found = steps(task(messages=(AgentMessage(at=at(1), text=hostile),)))
    assert found[1]["message"] == hostile
