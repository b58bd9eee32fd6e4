"""All checks over a scenario, as problems with file, line and column.

Codes below OD010 are refusals: OD001 the file cannot be read, OD002 a value is refused, OD003 a
pattern is outside the dialect, OD004 a support file cannot be used, OD005 a key is used twice.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

from opsdrill.errors import InvalidInput, InvalidPattern, Problem
from opsdrill.model.problem import dotted
from opsdrill.model.scenario import Scenario
from opsdrill.patterns import compile_pattern
from opsdrill.scenarios.lint.anchor import DefeatedAnchor
from opsdrill.scenarios.lint.ascii_words import AsciiWords
from opsdrill.scenarios.lint.at_least import AtLeastTooSmall
from opsdrill.scenarios.lint.bare_word import BareWord
from opsdrill.scenarios.lint.carriage_return import EndBeforeCarriageReturn
from opsdrill.scenarios.lint.check import Check, Finding, RecordedCheck, RecordedRuns, WrittenCheck
from opsdrill.scenarios.lint.comment import CutByComment
from opsdrill.scenarios.lint.contents import ContentsOfFile
from opsdrill.scenarios.lint.dot import UnescapedDot
from opsdrill.scenarios.lint.everything import MatchesEverything
from opsdrill.scenarios.lint.hard_failure import OnlyHardFailure
from opsdrill.scenarios.lint.here_document import DotInHereDocument
from opsdrill.scenarios.lint.ignore_case import RedundantIgnoreCase
from opsdrill.scenarios.lint.known_token import TokenInScenario
from opsdrill.scenarios.lint.label import LabelTwice
from opsdrill.scenarios.lint.loose_alternation import LooseAlternation
from opsdrill.scenarios.lint.lost_backslash import LostBackslash
from opsdrill.scenarios.lint.mention import FiresOnMention
from opsdrill.scenarios.lint.nested_repeats import NestedRepeats
from opsdrill.scenarios.lint.never_seen import NeverSeen
from opsdrill.scenarios.lint.pasted import PastedCharacters
from opsdrill.scenarios.lint.pipe import PipeInCheck
from opsdrill.scenarios.lint.task_plan import TaskPlan
from opsdrill.scenarios.lint.two_commands import TwoCommands
from opsdrill.scenarios.load import LoadedScenario, load_scenario

CHECKS: tuple[Check, ...] = (
    LabelTwice(),
    OnlyHardFailure(),
    TaskPlan(),
    AtLeastTooSmall(),
    PipeInCheck(),
    LostBackslash(),
    UnescapedDot(),
    BareWord(),
    LooseAlternation(),
    DefeatedAnchor(),
    TwoCommands(),
    DotInHereDocument(),
    FiresOnMention(),
    MatchesEverything(),
    RedundantIgnoreCase(),
    AsciiWords(),
    EndBeforeCarriageReturn(),
    NestedRepeats(),
    ContentsOfFile(),
    PastedCharacters(),
    TokenInScenario(),
)

WRITTEN_CHECKS: tuple[WrittenCheck, ...] = (CutByComment(),)

RECORDED_CHECKS: tuple[RecordedCheck, ...] = (NeverSeen(),)


def lint(loaded: LoadedScenario, recorded: RecordedRuns | None = None) -> list[Problem]:
    """What the checks find in a scenario that loads, in the order of the file.

    Args:
        loaded: the scenario.
        recorded: what earlier runs of it showed; None where there is none.
    """
    found = [
        *findings(loaded.scenario),
        *((check.code, finding) for check in WRITTEN_CHECKS for finding in check(loaded.document)),
    ]
    if recorded is not None:
        found += (
            (check.code, finding)
            for check in RECORDED_CHECKS
            for finding in check(loaded.scenario, recorded)
        )
    problems = [_problem(loaded, code, finding) for code, finding in found]
    return sorted(problems, key=lambda p: (p.line or 0, p.column or 0, p.code or ""))


def findings(scenario: Scenario) -> Iterator[tuple[str, Finding]]:
    """What the checks that need nothing but the scenario find, each with its code."""
    for check in CHECKS:
        for finding in check(scenario):
            yield check.code, _sound(finding)


def _sound(finding: Finding) -> Finding:
    """The finding without a better pattern that would be refused itself."""
    try:
        for pattern in finding.better:
            compile_pattern(pattern)
    except InvalidPattern:
        return replace(finding, better=(), fix=())
    return finding


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
        suggestion=finding.suggestion or _suggestion(finding.better),
        replacement=finding.better[0] if len(finding.better) == 1 else None,
    )
    return loaded.document.at(problem, loaded.document.place(finding.location))


def _suggestion(better: tuple[str, ...]) -> str | None:
    """The better pattern itself, or one for each of several rules."""
    if len(better) > 1:
        return "a rule for each of: " + ", ".join(better)
    return better[0] if better else None
