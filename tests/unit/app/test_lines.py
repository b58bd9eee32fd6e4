"""Lines of a transcript: what grading matched has its place; numbers are those of the evidence."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.integration.web.kept_records import hostile, large

from opsdrill.app.lines import Lines, OpenRecords, in_order, texts
from opsdrill.app.settings import Settings
from opsdrill.app.stores import opened_store
from opsdrill.app.wiring import Place
from opsdrill.errors import NotThere
from opsdrill.grading.targets import collect
from opsdrill.model.job import AgentMessage, Coverage, Job, JobRecord, Outcome, Seen, Task, ToolCall
from opsdrill.model.rules import WHERES
from opsdrill.model.ticket import Ticket, TicketMessage

BEGAN = datetime(2026, 11, 30, tzinfo=UTC)
WORDS = st.sampled_from(["", "one", "two", "three\nlines", "<b>"])
TIMES = st.none() | st.integers(0, 5).map(lambda s: BEGAN + timedelta(seconds=s))
OUTCOMES = st.sampled_from(get_args(Outcome))
CALLS = st.one_of(
    st.builds(
        ToolCall,
        kind=st.just("shell"),
        arguments=WORDS.map(lambda text: {"command": text}),
        outcome=OUTCOMES,
        started_at=TIMES,
        tool=st.none() | WORDS,
    ),
    st.builds(
        ToolCall,
        kind=st.sampled_from(["write_file", "update_file"]),
        arguments=WORDS.map(lambda text: {"path": text}),
        outcome=OUTCOMES,
        started_at=TIMES,
    ),
    st.builds(
        ToolCall,
        kind=st.sampled_from(["mcp", "other"]),
        tool=st.none() | WORDS,
        server=st.none() | WORDS,
        arguments=st.sampled_from([None, {}, [], "", {"a": 1}, "text", 0]),
        outcome=OUTCOMES,
        started_at=TIMES,
    ),
)
TASKS = st.lists(
    st.builds(
        Task,
        id=st.uuids().map(str),
        host=st.just("web-01"),
        status=st.just("completed"),
        description=st.none() | WORDS,
        operational_rules=st.none() | st.lists(WORDS, max_size=3).map(tuple),
        stop_reason=st.none() | WORDS,
        summary=st.none() | WORDS,
        tool_calls=st.lists(CALLS, max_size=4).map(tuple),
        messages=st.lists(st.builds(AgentMessage, at=TIMES, text=WORDS), max_size=3).map(tuple),
    ),
    max_size=3,
)
MESSAGES = st.lists(
    st.builds(TicketMessage, at=TIMES, author=st.sampled_from(["agent", "requester"]), body=WORDS),
    max_size=4,
)
JOBS = st.builds(
    Job,
    id=st.just("j"),
    status=st.just("completed"),
    plan=st.none() | WORDS,
    resolution_reasoning=st.none() | WORDS,
)
RECORDS = st.builds(
    JobRecord,
    format=st.just("opsdrill.job/1"),
    job=st.none() | JOBS,
    ticket=st.builds(Ticket, messages=MESSAGES.map(tuple)),
    tasks=TASKS.map(tuple),
    coverage=st.just(Coverage(default=Seen(state="whole"))),
)


@settings(max_examples=60)
@given(RECORDS)
def test_every_value_of_every_target_has_its_line(record: JobRecord) -> None:
    """G7.8: the item number is the value's place; the line there holds what the value says."""
    lines = Lines(record)
    for where in WHERES:
        values = collect(record, where)
        for item, value in enumerate(values.texts):
            place = lines.place(where, item)
            assert place is not None, (where, item)
            line = lines.all[place]
            said = " ".join(texts(line))
            parts = [part for part in value.replace(": ", " ").split() if part.isalpha()]
            assert all(part in said for part in parts), (where, value, said)
            if values.task(item) is not None:
                assert line.task is not None
                assert line.task.id == values.task(item)
        assert lines.place(where, len(values)) is None


@settings(max_examples=60)
@given(RECORDS)
def test_numbers_are_places_and_all_that_is_there_is_told(record: JobRecord) -> None:
    lines = list(in_order(record))
    assert [line.number for line in lines] == list(range(len(lines)))
    calls = sum(len(task.tool_calls) + len(task.messages) for task in record.tasks)
    assert sum(line.kind in ("call", "message") for line in lines) == calls


def test_a_text_is_found_in_capitals_or_not() -> None:
    task = Task(id="t", host="web-01", status="completed", description="Look at Nginx")
    record = JobRecord(
        format="opsdrill.job/1",
        job=None,
        tasks=(task,),
        coverage=Coverage(default=Seen(state="whole")),
    )
    assert Lines(record).found("nGINX") == [0]
    assert Lines(record).found("apache") == []


def test_records_that_were_read_last_are_kept_within_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large one makes room for itself; a run that was deleted is not there any more."""
    monkeypatch.setattr("opsdrill.app.lines.KEPT_CHARACTERS", 1000)
    first, second = hostile(tmp_path), large(tmp_path, commands=500)
    with opened_store(Place(tmp_path, tmp_path, Settings())) as store:
        records = OpenRecords(store)
        read = records.lines(first)
        assert records.lines(first) is read
        assert len(records.lines(second)) == 502
        assert records.lines(first) is not read
        store.delete(first)
        with pytest.raises(NotThere):
            records.lines(first)
