"""The output that one job record can hold is bounded, whatever the agent's commands print."""

from __future__ import annotations

from opsdrill.evidence.cut import REST_KEPT, OutputBudget, cut
from opsdrill.model.event import JobCreated, ToolReturned


def returned(output: str | None) -> ToolReturned:
    return ToolReturned(task="t1", call="t1.1", outcome="ran", exit_code=0, output=output)


def test_cut_says_how_much_is_missing() -> None:
    """The first and the last characters are kept; how many are between them is told."""
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdefg", 4) == "ab\n[3 characters left out]\nfg"


def test_a_job_without_end_of_output_stays_bounded() -> None:
    """Past the bound a call's long output is cut, a short one is not; nothing else is touched."""
    budget = OutputBudget(10_000)
    kept = [budget.spend(returned("x" * 5_000)) for _ in range(100)]
    sizes = [len(event.output or "") for event in kept if isinstance(event, ToolReturned)]
    assert sizes[:2] == [5_000, 5_000]
    assert max(sizes[2:]) < REST_KEPT + 50
    assert budget.spend(returned("short")) == returned("short")
    assert budget.spend(returned(None)) == returned(None)
    assert budget.spend(JobCreated(job="j")) == JobCreated(job="j")
