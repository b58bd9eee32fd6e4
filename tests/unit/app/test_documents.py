"""Documents for programs: any text can be written, and what was written is JSON in UTF-8."""

from __future__ import annotations

import json

import pytest

from opsdrill.app import documents
from opsdrill.model.job import Coverage, Job, JobRecord, Seen, Task, ToolCall

HALF = "caf\udce9"
"""A name of a file that is no UTF-8, as Python has it."""


def record(name: str) -> JobRecord:
    call = ToolCall(kind="other", tool=name, arguments={name: [name]}, outcome="ran")
    return JobRecord(
        format="opsdrill.job/1",
        job=Job(id="j", status="completed"),
        tasks=(Task(id="t", host="web-01", status="completed", tool_calls=(call,)),),
        coverage=Coverage(default=Seen(state="whole")),
    )


@pytest.mark.parametrize("name", ["caf\u00e9", HALF, "\ufffd"])
@pytest.mark.parametrize("indented", [True, False])
def test_a_model_is_written_whatever_its_texts_are(name: str, indented: bool) -> None:
    """Half a surrogate pair is an escape, in keys too; the document says what the model says."""
    content = documents.of_model(record(name), indented=indented)
    assert JobRecord.model_validate(json.loads(content.decode())) == record(name)
    assert (b"\n" in content) == indented


@pytest.mark.parametrize("name", ["caf\u00e9", HALF])
def test_a_listing_is_written_whatever_its_texts_are(name: str) -> None:
    """Rows with such a name are rows like any other."""
    rows = [{"file": name, "count": 1}, {"file": "plain", "count": 2}]
    assert json.loads(documents.document("x", "rows", rows).decode())["rows"] == rows
    assert [json.loads(line) for line in documents.lines(rows).splitlines()] == rows
