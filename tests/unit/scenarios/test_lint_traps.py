"""Traps of patterns: what must be told, with the better pattern; and what must not be told.

For each better pattern three things are shown: it compiles, it decides all examples rightly, and
the pattern that it replaces decides at least one of them wrongly.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.scenarios.traps import QUIET, TOLD, Quiet, Told

from opsdrill.errors import InvalidInput, InvalidPattern
from opsdrill.model.rules import WHERES, Where
from opsdrill.model.scenario import Scenario
from opsdrill.patterns import compile_pattern
from opsdrill.scenarios.lint.check import Finding
from opsdrill.scenarios.lint.linter import CHECKS, findings
from opsdrill.scenarios.load import parse_scenario

TRAPS = [f"OD{number:03}" for number in range(20, 36) if number != 28]
"""OD028 needs recorded runs; see test_lint_recorded.py."""


def scenario(pattern: str, where: str, *, negate: bool = False) -> Scenario:
    rule = {"label": "a", "validator": "pattern_match", "where": where, "pattern": pattern}
    return parse_scenario(
        {
            "key": "a",
            "title": "t",
            "ticket_title": "t",
            "hosts": ["web-01", "db-01"],
            "validation": [{**rule, "negate": negate}],
        }
    )


def told(code: str, asked: Told | Quiet) -> list[Finding]:
    whole = findings(scenario(asked.pattern, asked.where, negate=asked.negate))
    return [finding for found, finding in whole if found == code]


def cases(table: Mapping[str, Sequence[Told | Quiet]]) -> list[object]:
    return [
        pytest.param(code, row, id=f"{code}-{row.pattern[:40]!a}-{row.where}")
        for code, rows in table.items()
        for row in rows
    ]


def test_every_trap_has_both_tables_and_the_quiet_one_is_no_shorter() -> None:
    assert list(TOLD) == list(QUIET) == TRAPS
    assert {check.code for check in CHECKS} >= set(TRAPS)
    assert [code for code in TRAPS if len(QUIET[code]) < len(TOLD[code])] == []


@pytest.mark.parametrize(("code", "row"), cases(TOLD))
def test_a_trap_is_told_with_the_better_pattern(code: str, row: Told) -> None:
    found = told(code, row)
    assert [(finding.severity, finding.better) for finding in found] == [(row.severity, row.better)]
    [finding] = found
    assert finding.location == ("validation", 0, "pattern")
    assert finding.message and finding.message[0].islower()
    assert finding.suggestion or row.better or code in ("OD020", "OD023", "OD025")


@pytest.mark.parametrize(("code", "row"), cases(QUIET))
def test_what_is_no_trap_is_not_told(code: str, row: Quiet) -> None:
    compile_pattern(row.pattern)
    assert told(code, row) == []


def matched(patterns: tuple[str, ...], value: str) -> bool:
    return any(re.search(pattern, value, re.IGNORECASE) for pattern in patterns)


@pytest.mark.parametrize(("code", "row"), cases(TOLD))
def test_the_better_pattern_decides_rightly_where_the_other_does_not(code: str, row: Told) -> None:
    for pattern in row.better:
        compile_pattern(pattern)
    if not row.better or code == "OD034":
        return  # the latter is for another target, see below
    assert [value for value in row.hit if not matched(row.better, value)] == []
    assert [value for value in row.miss if matched(row.better, value)] == []
    assert row.hit and row.miss
    values = [*row.hit, *row.miss]
    differs = [v for v in values if matched((row.pattern,), v) != matched(row.better, v)]
    assert bool(differs) != row.same


@pytest.mark.parametrize(("code", "row"), cases(TOLD))
def test_the_better_pattern_is_no_longer_told(code: str, row: Told) -> None:
    """What follows a suggestion is not sent round in a circle."""
    if code == "OD034":
        return
    for pattern in row.better:
        again = Quiet(pattern, row.where, row.negate)
        assert [finding.better for finding in told(code, again)] == []


PIECES = st.sampled_from(
    [
        *"ab ./^$|()[]*+?{}<>&;'\"\\\n\b#-=1ü“ ",
        *[r"\b", r"\s+", r"\d", r"\w+", ".*", "(?:", "(?=", "(?!", "(?i)", "(?a)", "(?x)", "(?i:"],
        *["<<", "&&", "rm", "top", "sudo", "nginx", ".conf", "10.0.0.1", "reboot", "{2,}", "\\1"],
    ]
)


@settings(deadline=None)
@given(st.lists(PIECES, max_size=14).map("".join), st.sampled_from(WHERES), st.booleans())
def test_no_pattern_breaks_a_check(pattern: str, where: Where, negate: bool) -> None:
    """Whatever compiles: nothing raises, and whatever is suggested compiles or is kept back."""
    try:
        compile_pattern(pattern)
        asked = scenario(pattern, where, negate=negate)
    except (InvalidPattern, InvalidInput):
        return
    for _, finding in findings(asked):
        for change in finding.fix:
            assert 0 <= change.start <= change.end <= len(pattern)
        for better in finding.better:
            compile_pattern(better)
