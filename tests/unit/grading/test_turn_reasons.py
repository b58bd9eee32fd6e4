"""`turns` on jobs of many turns and many hosts: the reason stays a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from opsdrill.grading.engine import grade
from opsdrill.model.job import JobRecord
from opsdrill.model.result import RuleResult
from opsdrill.model.scenario import Scenario
from opsdrill.patterns import BoundedSearcher

SCENARIO = Scenario.model_validate(
    {
        "key": "k",
        "title": "t",
        "ticket_title": "t",
        "hosts": ["web-01"],
        "validation": [{"label": "r", "validator": "turns", "turns": [{"hosts": ["web-01"]}]}],
    }
)


def judged(tasks: Sequence[tuple[int, str]]) -> RuleResult:
    """The rule's result for tasks given as (turn, host), each a second long."""
    record = JobRecord.model_validate(
        {
            "format": "opsdrill.job/1",
            "job": {"id": "j", "status": "completed", "resolution": "success"},
            "coverage": {"default": {"state": "whole"}},
            "tasks": [
                {
                    "id": f"t{index}",
                    "turn": turn,
                    "host": host,
                    "status": "completed",
                    "started_at": "2026-01-01T00:00:00Z",
                    "ended_at": "2026-01-01T00:00:01Z",
                }
                for index, (turn, host) in enumerate(tasks)
            ],
        }
    )
    with BoundedSearcher() as searcher:
        return grade(SCENARIO, record, [], searcher).rules[0]


def test_many_turns() -> None:
    """The turns after those listed are shown up to a point, then counted. [G9.1, G9.11]"""
    rule = judged([(turn, "web-01") for turn in range(30)])
    assert rule.status == "passed"
    assert rule.reason.startswith("turn 1: web-01; turn 2: web-01; ")
    assert rule.reason.endswith("turn 9: web-01; and 21 more turns")


def test_many_hosts() -> None:
    """Hosts of a turn are shown up to a point; 30,000 tasks in one turn do not hang. [G9.11]"""
    rule = judged([(1, f"host-{index:05}") for index in range(30_000)])
    assert rule.status == "failed"
    assert "turn 1 has no task on web-01" in rule.reason
    assert rule.reason.endswith("host-00007 and 29992 more")


def test_a_hostile_host_name() -> None:
    """What a terminal would obey is escaped. [G3.2]"""
    rule = judged([(1, "web-01"), (1, "\x1b[2J")])
    assert rule.status == "failed"
    assert rule.reason.isprintable()
    assert "\\x1b[2J" in rule.reason
