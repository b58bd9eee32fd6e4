"""What tool calls gave, apart from their record, and both together again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsdrill.model.job import Coverage, JobRecord, Seen, Task, ToolCall
from opsdrill.model.outputs import Outputs, apart, together

GIVEN = st.lists(st.lists(st.none() | st.text(st.characters(codec=None)), max_size=3), max_size=3)


def record(given: list[list[str | None]]) -> JobRecord:
    tasks = [
        Task(
            id=f"t{number}", host="web-01", status="completed",
            tool_calls=tuple(
                ToolCall(kind="mcp", outcome="ran", exit_code=0, output=output)
                for output in outputs
            ),
        )
        for number, outputs in enumerate(given)
    ]  # fmt: skip
    coverage = Coverage(default=Seen(state="whole"))
    return JobRecord(format="opsdrill.job/1", job=None, tasks=tuple(tasks), coverage=coverage)


@given(GIVEN)
def test_a_record_and_its_outputs_are_the_record(given: list[list[str | None]]) -> None:
    whole = record(given)
    rest, outputs = apart(whole)
    assert all(call.output is None for task in rest.tasks for call in task.tool_calls)
    if outputs:
        assert together(rest, outputs) == whole
    else:
        assert rest == whole


def test_outputs_are_put_into_the_record_that_was_read() -> None:
    """No call is copied for them: a record of many thousand calls is not made twice."""
    rest, outputs = apart(record([["a", None], ["b"]]))
    before = [call for task in rest.tasks for call in task.tool_calls]
    after = [call for task in together(rest, outputs).tasks for call in task.tool_calls]
    assert all(one is other for one, other in zip(before, after, strict=True))


@pytest.mark.parametrize("wrong", [(), (("a", "b"),), (("a",), ("b",))])
def test_outputs_of_another_record_are_refused(wrong: Outputs) -> None:
    with pytest.raises(ValueError, match="not the outputs of this record"):
        together(record([["a"]]), wrong)
