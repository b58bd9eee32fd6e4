"""The light reader of sealed records: whatever was kept grades as the record that was kept."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.grading.test_grading_properties import (
    ANSWERS,
    RECORDS,
    RULES,
    Data,
    PlainSearcher,
    scenarios,
)

from opsdrill.grading.engine import Grader
from opsdrill.model.host import HostAnswer
from opsdrill.model.job import JobRecord
from opsdrill.model.sealed import SealedRecord, read_record
from opsdrill.store import documents

RECORD: dict[str, object] = {
    "format": "opsdrill.job/1",
    "job": {"id": "j", "status": "completed", "resolution": "success"},
    "tasks": [
        {
            "id": "t1",
            "host": "web-01",
            "status": "completed",
            "started_at": "2026-01-31T12:00:00.000001Z",
            "tool_calls": [
                {"kind": "shell", "outcome": "ran", "arguments": {"command": "ls"}},
                {"kind": "mcp", "outcome": "ran", "tool": "t", "arguments": {"a": 10**30}},
            ],
        }
    ],
    "coverage": {"default": {"state": "whole"}},
}


def kept(**changes: object) -> bytes:
    return documents.dump(documents.RECORD, JobRecord.model_validate(RECORD | changes))


@given(st.lists(RULES, max_size=4), RECORDS, ANSWERS)
def test_both_readers_grade_alike(
    rules: list[Data], record: JobRecord, answers: list[HostAnswer]
) -> None:
    """A regrade is the same function on the same bytes, whichever reader read them. [G11.1]"""
    content = documents.dump(documents.RECORD, record)
    whole = documents.load(documents.RECORD, content, "the record")
    grader = Grader(scenarios(rules), PlainSearcher())
    assert grader.grade(read_record(content), answers) == grader.grade(whole, answers)


def test_what_a_store_keeps_is_read_lightly() -> None:
    """Else the light reader could be broken and no test would tell."""
    read = read_record(kept())
    assert isinstance(read, SealedRecord)
    (task,) = read.tasks
    assert task.started_at == JobRecord.model_validate(RECORD).tasks[0].started_at
    assert task.tool_calls[1].arguments == {"a": 10**30}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_arguments_come_back_as_they_were_kept(arguments: object) -> None:
    """Whatever a tool was given, with numbers of any size, in the order of its keys."""
    call = {"kind": "other", "outcome": "ran", "arguments": arguments}
    task = {"id": "t", "host": "h", "status": "completed", "tool_calls": [call]}
    content = kept(tasks=[task])
    whole = documents.load(documents.RECORD, content, "the record").tasks[0].tool_calls[0]
    (read,) = read_record(content).tasks[0].tool_calls
    assert json.dumps(read.arguments) == json.dumps(whole.arguments)


@pytest.mark.parametrize("text", ["\ud800", "a\0b", "\u2028", "𝒜"])
def test_any_text_comes_back(text: str) -> None:
    """Lone surrogates are left to the whole reader."""
    call = {"kind": "other", "outcome": "ran", "arguments": {text: [text]}}
    task = {"id": "t", "host": "h", "status": "completed", "tool_calls": [call]}
    (read,) = read_record(kept(tasks=[task])).tasks[0].tool_calls
    assert read.arguments == {text: [text]}


def _changed(path: str, value: object) -> bytes:
    tree = json.loads(kept())
    *folders, last = path.split(".")
    place = tree
    for name in folders:
        place = place[int(name) if name.isdigit() else name]
    place[last] = value
    return json.dumps(tree).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"[]",
        b"\xff",
        b"{}",
        kept()[:-1],
        _changed("format", "opsdrill.job/2"),
        _changed("job", 1),
        _changed("job.status", "gone"),
        _changed("coverage", None),
        _changed("coverage.default.state", "some"),
        _changed("stop", []),
        _changed("ticket", {"messages": [{"author": "nobody", "body": "b"}]}),
        _changed("isolation", "all"),
        _changed("tasks.0.host", None),
        _changed("tasks.0.turn", True),
        _changed("tasks.0.started_at", "2026-01-31T12:00:00"),
        _changed("tasks.0.operational_rules", [1]),
        _changed("tasks.0.messages", [{"text": None}]),
        _changed("tasks.0.tool_calls.0.kind", "spell"),
        _changed("tasks.0.tool_calls.0.outcome", "won"),
        _changed("tasks.0.tool_calls.0.arguments", None),
        _changed("tasks.0.tool_calls.0.arguments", ["command"]),
        _changed("tasks.0.tool_calls.0.arguments", {"command": 1}),
        _changed("tasks.0.tool_calls.0.arguments", {"path": "/a"}),
        _changed("tasks", json.loads(kept())["tasks"] * 2),
    ],
)
def test_damage_is_noticed(content: bytes) -> None:
    """What grading reads is what it must be; a task is there once."""
    with pytest.raises(ValueError, match=r"\w"):
        read_record(content)
