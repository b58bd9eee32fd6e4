"""`pattern_match` and the regex engine: budgets, many values, many matches."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from opsdrill.grading.engine import VALIDATORS, grade
from opsdrill.model.job import JobRecord
from opsdrill.model.result import Grade
from opsdrill.model.rules import VALIDATORS as NAMES
from opsdrill.model.scenario import Scenario
from opsdrill.patterns import BoundedSearcher, Pattern, Searched, Searcher, compile_pattern

HANGS = "a" * 40 + "!"


class TiredSearcher:
    """Finds `hit`, and runs out of its budget on every value that is `slow`."""

    seconds = 0.25

    def search(self, pattern: Pattern, values: Sequence[str]) -> Searched:
        return Searched(
            tuple((0, 3) if value == "hit" else None for value in values),
            tuple(item for item, value in enumerate(values) if value == "slow"),
        )


def record(commands: Sequence[str], *, state: str = "whole") -> JobRecord:
    calls = [
        {"kind": "shell", "outcome": "ran", "arguments": {"command": command}}
        for command in commands
    ]
    return JobRecord.model_validate(
        {
            "format": "opsdrill.job/1",
            "job": {"id": "j", "status": "completed", "resolution": "success"},
            "tasks": [{"id": "t1", "host": "web-01", "status": "completed", "tool_calls": calls}],
            "coverage": {"default": {"state": "whole"}, "executed_commands": {"state": state}},
        }
    )


def graded(
    commands: Sequence[str],
    searcher: Searcher,
    *,
    negate: bool = False,
    pattern: str = "x",
    state: str = "whole",
) -> Grade:
    rules = [
        {
            "label": "searched",
            "validator": "pattern_match",
            "where": "executed_commands",
            "pattern": pattern,
            "negate": negate,
        },
        {"label": "other", "validator": "task_count", "min": 1},
    ]
    scenario = Scenario.model_validate(
        {"key": "k", "title": "t", "ticket_title": "t", "validation": rules}
    )
    return grade(scenario, record(commands, state=state), [], searcher)


@pytest.mark.parametrize("negate", [False, True])
def test_out_of_budget_is_an_error_of_the_author(negate: bool) -> None:
    """Without a match elsewhere the rule is undecided; other rules go on. [G7.9, G1.10]"""
    made = graded(["ls", "slow", "slow"], TiredSearcher(), negate=negate)
    assert (made.verdict, made.fault, made.after_agent) == ("error", "author", True)
    assert made.rules[0].status == "error"
    assert made.rules[0].reason == (
        "pattern exceeded its time budget on executed_commands[1] of task t1 "
        "and 1 more value (0.25 s of CPU each)"
    )
    assert made.rules[1].status == "passed"


@pytest.mark.parametrize(("negate", "status"), [(False, "passed"), (True, "failed")])
def test_a_match_elsewhere_decides(negate: bool, status: str) -> None:
    """A match stands, before and after a value that ran out of budget. [G7.9, G10.9]"""
    for commands in (["slow", "hit"], ["hit", "slow"]):
        rule = graded(commands, TiredSearcher(), negate=negate, state="partial").rules[0]
        assert rule.status == status
        assert [match.value for match in rule.matches] == ["hit"]


def test_out_of_budget_comes_before_a_gap() -> None:
    """The author can mend the pattern; the gap may matter no more then. [G10.9]"""
    rule = graded(["slow"], TiredSearcher(), state="partial").rules[0]
    assert (rule.status, rule.fault) == ("error", "author")


def test_the_budget_is_kept() -> None:
    """Only where a pattern was searched. [G7.10]"""
    assert graded(["ls"], TiredSearcher()).pattern_seconds == 0.25
    empty = Scenario.model_validate({"key": "k", "title": "t", "ticket_title": "t"})
    assert grade(empty, record(["ls"]), [], TiredSearcher()).pattern_seconds is None


def test_a_pattern_that_would_hang() -> None:
    """The real engine gives up on it, and still finds it elsewhere. [G7.9]"""
    with BoundedSearcher(0.2) as searcher:
        stuck = graded([HANGS, "ls"], searcher, pattern=r"(a+)+\1$", negate=True)
        found = graded([HANGS, "aaa"], searcher, pattern=r"(a+)+\1$")
    assert stuck.rules[0].status == "error"
    assert stuck.rules[0].reason.startswith(
        "pattern exceeded its time budget on executed_commands[0] of task t1"
    )
    assert found.rules[0].status == "passed"


def test_the_first_twenty_matches() -> None:
    """All are counted. [G7.8]"""
    with BoundedSearcher() as searcher:
        rule = graded([f"x{item}" for item in range(50)], searcher).rules[0]
    assert rule.match_count == 50
    assert [match.item for match in rule.matches] == list(range(20))
    assert rule.matches[19].value == "x19"


def test_a_lone_surrogate_is_replaced() -> None:
    """One code point for one, so that spans stay right. [G8.19]"""
    with BoundedSearcher() as searcher:
        rule = graded(["é\ud800x"], searcher).rules[0]
    assert rule.matches[0].value == "é\ufffdx"
    assert rule.matches[0].span == (2, 3)


def test_many_commands_cost_what_the_search_costs() -> None:
    """Values are taken from the record once; each further rule costs little beside its search."""
    commands = [f"systemctl status app-{item}" for item in range(50_000)]
    rules = [
        {"label": "r", "validator": "pattern_match", "where": "executed_commands", "pattern": text}
        for text in [f"app-{item}$" for item in range(8)]
    ]
    scenario = Scenario.model_validate(
        {"key": "k", "title": "t", "ticket_title": "t", "validation": rules}
    )
    kept = record(commands)
    with BoundedSearcher() as searcher:
        start = time.process_time()
        for rule in rules:
            searcher.search(compile_pattern(rule["pattern"]), commands)
        searching = time.process_time() - start
        start = time.process_time()
        made = grade(scenario, kept, [], searcher)
        grading = time.process_time() - start
    assert made.rules[7].match_count == 1
    assert grading < 10 * searching + 5, "a hang bound, no benchmark"


def test_the_registry_has_every_validator() -> None:
    """What the model knows can be graded."""
    assert set(NAMES) <= set(VALIDATORS.names())
