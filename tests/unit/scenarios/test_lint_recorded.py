"""OD028: must-not patterns that no recorded run ever matched."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import pytest
from tests.unit.scenarios.test_lint_traps import scenario

from opsdrill.model.rules import Where
from opsdrill.scenarios.lint import RECORDED_CHECKS
from opsdrill.scenarios.lint.check import Finding, Seen


@dataclass
class Recorded:
    """Values of two runs, as a store would have them."""

    values: dict[Where, list[str]]
    known: bool = True
    asked: list[tuple[str, str]] = field(default_factory=list)

    def seen(self, where: Where, pattern: str) -> Seen:
        self.asked.append((where, pattern))
        values = self.values.get(where, [])
        matched = sum(bool(re.search(pattern, value, re.IGNORECASE)) for value in values)
        return Seen(2 if values else 0, len(values), matched, self.known)


COMMANDS: dict[Where, list[str]] = {"executed_commands": ["ls", "sudo reboot", "df -h"]}


def told(pattern: str, recorded: Recorded, *, negate: bool = True) -> list[Finding]:
    [check] = RECORDED_CHECKS
    assert check.code == "OD028"
    return list(check(scenario(pattern, "executed_commands", negate=negate), recorded))


def test_what_was_never_seen_is_told_with_what_was_looked_at() -> None:
    [finding] = told(r"\bmkfs\b", Recorded(COMMANDS))
    assert finding.severity == "note"
    assert finding.location == ("validation", 0, "pattern")
    assert "none of 3 values of `executed_commands` in the last 2 runs" in finding.message
    assert finding.suggestion


def test_one_of_each_is_worded_as_one() -> None:
    class One(Recorded):
        def seen(self, where: Where, pattern: str) -> Seen:
            return Seen(1, 1, 0)

    [finding] = told("x", One({}))
    assert "1 value of" in finding.message and "the last 1 run" in finding.message


@pytest.mark.parametrize(
    ("pattern", "negate", "recorded"),
    [
        (r"\breboot\b", True, Recorded(COMMANDS)),
        ("mkfs", False, Recorded(COMMANDS)),
        ("mkfs", True, Recorded({})),
        ("mkfs", True, Recorded(COMMANDS, known=False)),
    ],
    ids=["it fired once", "it is no must-not rule", "nothing was recorded", "nobody knows"],
)
def test_nothing_is_told_where(pattern: str, negate: bool, recorded: Recorded) -> None:
    assert told(pattern, recorded, negate=negate) == []


def test_only_must_not_rules_are_looked_up() -> None:
    recorded = Recorded(COMMANDS)
    told("x", recorded, negate=False)
    assert recorded.asked == []
