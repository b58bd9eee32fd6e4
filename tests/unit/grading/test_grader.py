"""A grader kept for many jobs, and what hostile rules and records make of it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.grading.test_grading_properties import (
    ANSWERS,
    RECORDS,
    RULES,
    Data,
    PlainSearcher,
    scenarios,
)
from tests.unit.grading.test_grading_searching import record

from opsdrill.grading.engine import Grader, grade
from opsdrill.model.host import HostAnswer
from opsdrill.model.job import JobRecord
from opsdrill.model.result import Grade
from opsdrill.model.scenario import Scenario
from opsdrill.patterns import BoundedSearcher

BOUND = 120.0
"""Seconds that bound a hang; no benchmark."""


@pytest.fixture(scope="module")
def searcher() -> Iterator[BoundedSearcher]:
    with BoundedSearcher(PlainSearcher.seconds) as bounded:
        yield bounded


@settings(deadline=None)
@given(rules=st.lists(RULES, max_size=5), jobs=st.lists(st.tuples(RECORDS, ANSWERS), max_size=3))
def test_a_kept_grader_grades_each_job_as_if_alone(
    searcher: BoundedSearcher, rules: list[Data], jobs: list[tuple[JobRecord, list[HostAnswer]]]
) -> None:
    """Nothing of one job is left for the next, and all patterns at once find what each finds
    alone with `re`. [G7.1, G11.1]"""
    scenario = scenarios(rules)
    grader = Grader(scenario, searcher)
    for kept, answers in jobs:
        assert grader.grade(kept, answers) == grade(scenario, kept, answers, PlainSearcher())


@given(st.lists(RULES, max_size=4), RECORDS, ANSWERS)
def test_results_made_unchecked_would_pass_the_check(
    rules: list[Data], kept: JobRecord, answers: list[HostAnswer]
) -> None:
    """Grading makes results without validation: every field is there, in order, of its type."""
    made = grade(scenarios(rules), kept, answers, PlainSearcher())
    checked = Grade.model_validate(made.model_dump())
    assert checked.model_dump_json() == made.model_dump_json()
    for value in (made, made.completion, *made.rules):
        assert list(value.__dict__) == list(type(value).model_fields)
    assert made.model_copy(update={"reason": "x"}).reason == "x"


def searching(patterns: list[str], *, negate: bool = False) -> Scenario:
    rules = [
        {
            "label": f"rule {number}",
            "validator": "pattern_match",
            "where": "executed_commands",
            "pattern": pattern,
            "negate": negate,
        }
        for number, pattern in enumerate(patterns)
    ]
    return Scenario.model_validate(
        {"key": "k", "title": "t", "ticket_title": "t", "validation": rules}
    )


def test_one_bad_pattern_spoils_no_other() -> None:
    """Nested quantifiers run out of time where they may be; all other rules are decided. [G7.9]"""
    hang = "a" * 40 + "!"
    patterns = [r"(a+)+\1$", "(a+)+$", "ls", r"(?<!x)(\w+\s?)+;$", "a!"]
    begin = time.monotonic()
    with BoundedSearcher(0.2) as bounded:
        made = Grader(searching(patterns, negate=True), bounded).grade(record([hang, "ls"]), ())
    assert [rule.status for rule in made.rules] == ["error", "passed", "failed", "passed", "failed"]
    assert made.rules[0].reason.startswith("pattern exceeded its time budget on")
    assert time.monotonic() - begin < BOUND


@pytest.mark.parametrize("filler", ["x", "é", "x\n", "\0", "\ud800"])
def test_values_of_twenty_megabytes(searcher: BoundedSearcher, filler: str) -> None:
    """Of any kind: they end in bounded time, and beside them the short ones are found. [G7.9]"""
    long = filler * (20_000_000 // len(filler)) + "needle"
    patterns = ["needle", "^needle$", r"(?=n)needle", r"\bno-such\b"]
    begin = time.monotonic()
    made = Grader(searching(patterns), searcher).grade(record([long, "needle", "hay"]), ())
    assert [rule.match_count for rule in made.rules] == [2, 1, 2, 0]
    assert made.rules[0].matches[0].span == (len(long) - 6, len(long))
    assert time.monotonic() - begin < BOUND


def test_ten_thousand_rules(searcher: BoundedSearcher) -> None:
    """Each gets its own clear result. [G7.3]"""
    begin = time.monotonic()
    grader = Grader(searching([rf"\bapp-{n}\b" for n in range(10_000)]), searcher)
    for _ in range(2):
        made = grader.grade(record(["restart app-7", "restart\napp-9999 é", "app-7 app-8"]), ())
        found = {rule.index: rule.match_count for rule in made.rules if rule.status == "passed"}
        assert found == {7: 2, 8: 1, 9999: 1}
    assert time.monotonic() - begin < BOUND
