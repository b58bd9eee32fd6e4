"""All checks over a scenario, as problems with file, line and column.

Codes below OD010 are refusals: OD001 the file cannot be read, OD002 a value is refused, OD003 a
pattern is outside the dialect, OD004 a support file cannot be used, OD005 a key is used twice.
"""

from __future__ import annotations

import os

from opsdrill.errors import InvalidInput, Problem
from opsdrill.model.problem import dotted
from opsdrill.scenarios.lint.at_least import AtLeastTooSmall
from opsdrill.scenarios.lint.check import Check, Finding, WrittenCheck
from opsdrill.scenarios.lint.comment import CutByComment
from opsdrill.scenarios.lint.hard_failure import OnlyHardFailure
from opsdrill.scenarios.lint.label import LabelTwice
from opsdrill.scenarios.lint.pipe import PipeInCheck
from opsdrill.scenarios.lint.task_plan import TaskPlan
from opsdrill.scenarios.load import LoadedScenario, load_scenario

CHECKS: tuple[Check, ...] = (
    LabelTwice(),
    OnlyHardFailure(),
    TaskPlan(),
    AtLeastTooSmall(),
    PipeInCheck(),
)


WRITTEN_CHECKS: tuple[WrittenCheck, ...] = (CutByComment(),)


def lint(loaded: LoadedScenario) -> list[Problem]:
    """What the checks find in a scenario that loads, in the order of the file."""
    found = [
        _problem(loaded, check.code, finding)
        for check in CHECKS
        for finding in check(loaded.scenario)
    ]
    found += [
        _problem(loaded, check.code, finding)
        for check in WRITTEN_CHECKS
        for finding in check(loaded.document)
    ]
    return sorted(found, key=lambda p: (p.line or 0, p.column or 0, p.code or ""))


def lint_path(path: str | os.PathLike[str]) -> list[Problem]:
    """Everything wrong with the scenario at a path: what refuses it, else what the checks find.

    Raises:
        UsageError: there is no scenario there.
    """
    try:
        loaded = load_scenario(path)
    except InvalidInput as error:
        return list(error.problems)
    return lint(loaded)


def _problem(loaded: LoadedScenario, code: str, finding: Finding) -> Problem:
    problem = Problem(
        dotted(finding.location),
        finding.message,
        severity=finding.severity,
        code=code,
        suggestion=finding.suggestion,
    )
    return loaded.document.at(problem, loaded.document.place(finding.location))
