"""What the gateway reports of one job is bounded, and what is past that is not passed on."""

from __future__ import annotations

import pytest

from opsdrill.agents.gateway import bounds
from opsdrill.agents.gateway.witness import NotRecorded, Witness
from opsdrill.model.event import JobEvent, ToolReturned
from opsdrill.model.job import Coverage, Seen

WHOLE = Coverage(default=Seen(state="whole"))


class Reports:
    """Keeps the events."""

    def __init__(self) -> None:
        self.events: list[JobEvent] = []

    def record(self, event: JobEvent) -> None:
        self.events.append(event)


@pytest.mark.parametrize(("size", "most"), [(1 << 20, 64), (1, bounds.CALLS)])
def test_more_than_is_recorded_is_not_passed_on(size: int, most: int) -> None:
    """[W1.4, W3.5] Commands without end do not fill the disk; that there were more is known."""
    reports = Reports()
    witness = Witness(reports)
    command = "x" * size
    for _ in range(most):
        witness.begin("web-01", "shell", "ssh", {"command": command}).returned("ran")
    assert witness.coverage(WHOLE) == WHOLE
    for _ in range(3):
        with pytest.raises(NotRecorded):
            witness.begin("web-01", "shell", "ssh", {"command": command})
    returned = [event for event in reports.events if isinstance(event, ToolReturned)]
    assert len(returned) == most + 1
    assert returned[-1].outcome == "refused" and "more was asked" in (returned[-1].output or "")
    assert witness.coverage(WHOLE).of("executed_commands").state == "partial"
    assert witness.fault is None
