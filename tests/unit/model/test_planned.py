"""The few parts of a kept spec that a regrade looks at are those of the whole spec."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from opsdrill.model.planned import read_planned
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec
from opsdrill.model.scenario import Scenario
from opsdrill.store.documents import SPEC, dump


def spec(argument: str) -> RunSpec:
    scenario = Scenario(key="disk-full", title="A full disk", ticket_title="Help")
    return RunSpec(
        id="r1",
        scenario=scenario,
        scenario_version=scenario.version(),
        agent=AgentChoice(adapter="script", argument=argument),
        lab=LabChoice(name="sandbox", driver="sandbox"),
        masked=("TOKEN",),
        created_at=datetime(2026, 1, 31, 12, tzinfo=UTC),
    )


@pytest.mark.parametrize("argument", ["file.yaml", "half a pair: \ud800"])
def test_the_parts_are_those_of_the_spec(argument: str) -> None:
    content = dump(SPEC, spec(argument))
    planned, tree = read_planned(content), json.loads(content)
    assert (planned.scenario_version, planned.masked) == (tree["scenario_version"], ("TOKEN",))
    assert json.loads(bytes(planned.scenario)) == tree["scenario"]
    assert json.loads(bytes(planned.lab)) == tree["lab"]


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b"[]", b"\xff", b'{"masked": "\\ud800"}'])
def test_what_is_no_spec_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError):
        read_planned(content)
