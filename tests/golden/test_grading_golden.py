"""Golden cases: hand-written grades, one or more for each numbered rule of the reference page.

A case leaves out what does not matter to it: `BASE_SCENARIO` and `BASE_RECORD` fill the rest, and
only what `expect` names is compared. `reason_has` lists texts that must stand in a reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import Field, JsonValue, TypeAdapter

from opsdrill.grading.engine import grade
from opsdrill.model.fields import Recorded
from opsdrill.model.host import HostAnswers
from opsdrill.model.job import JobRecord
from opsdrill.model.scenario import Scenario
from opsdrill.patterns import BoundedSearcher

FOLDER = Path(__file__).parent / "grading"

BASE_SCENARIO: dict[str, JsonValue] = {
    "key": "golden",
    "title": "Golden",
    "ticket_title": "Golden",
    "hosts": ["web-01", "web-02", "db-01"],
}
BASE_RECORD: dict[str, JsonValue] = {
    "format": "opsdrill.job/1",
    "job": {"id": "j1", "status": "completed", "resolution": "success"},
    "coverage": {"default": {"state": "whole"}},
}


class Case(Recorded):
    """One golden case; `why` says what would go wrong without the rules it names."""

    name: str
    rules: list[str]
    why: str
    scenario: dict[str, JsonValue]
    record: dict[str, JsonValue] = Field(default_factory=dict)
    answers: list[JsonValue] = Field(default_factory=list)
    expect: dict[str, JsonValue]


CASES = TypeAdapter(list[Case])


def _cases() -> Iterator[tuple[str, Case]]:
    for path in sorted(FOLDER.glob("*.json")):
        for case in CASES.validate_json(path.read_bytes()):
            yield f"{path.stem}: {case.name}", case


ALL = dict(_cases())


@pytest.fixture(scope="module")
def searcher() -> Iterator[BoundedSearcher]:
    with BoundedSearcher(2.0) as bounded:
        yield bounded


def _scenario(case: Case) -> Scenario:
    content = BASE_SCENARIO | case.scenario
    rules = content["validation"]
    assert isinstance(rules, list)
    content["validation"] = [
        {"label": f"r{index}", **rule} for index, rule in enumerate(rules) if isinstance(rule, dict)
    ]
    return Scenario.model_validate(content)


def _compare(expected: JsonValue, actual: JsonValue, place: str) -> None:
    """What `expected` names must be so in `actual`; lists have the same length."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key, value in expected.items():
            if key == "reason_has":
                assert isinstance(value, list)
                missing = [text for text in value if str(text) not in str(actual["reason"])]
                assert not missing, f"{place}.reason lacks {missing}: {actual['reason']}"
            else:
                _compare(value, actual[key], f"{place}.{key}")
    elif isinstance(expected, list) and isinstance(actual, list):
        assert len(expected) == len(actual), f"{place}: {actual}"
        for index, (wanted, found) in enumerate(zip(expected, actual, strict=True)):
            _compare(wanted, found, f"{place}[{index}]")
    else:
        assert expected == actual, place


@pytest.mark.parametrize("name", ALL)
def test_golden(name: str, searcher: BoundedSearcher) -> None:
    case = ALL[name]
    record = JobRecord.model_validate(BASE_RECORD | case.record)
    answers = HostAnswers.model_validate({"answers": case.answers}).answers
    given = grade(_scenario(case), record, answers, searcher)
    _compare(case.expect, json.loads(given.model_dump_json()), "grade")
