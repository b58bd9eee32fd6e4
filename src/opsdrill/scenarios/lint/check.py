"""What a check is: one coded thing that can be wrong with a scenario, in a file of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from opsdrill.errors import Severity
from opsdrill.model.problem import Location
from opsdrill.model.rules import Where
from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.document import Document
from opsdrill.scenarios.lint.replacement import Replacement


@dataclass(frozen=True, slots=True)
class Finding:
    """One place where a check found something.

    Args:
        location: keys and indexes from the top of the scenario, e.g. `("validation", 2, "run")`.
        message: a sentence that follows the path: what is wrong and why.
        suggestion: what to write instead, where that can be said.
        severity: `error` (cannot be meant), `warning` (almost surely not meant) or `note`
            (depends on judgement).
        better: the pattern to write instead; several where it takes a rule for each. Without a
            suggestion these are the suggestion.
        fix: how to mend the text at the location where nothing that was meant can be lost by it.
    """

    location: Location
    message: str
    suggestion: str | None = None
    severity: Severity = "warning"
    better: tuple[str, ...] = ()
    fix: tuple[Replacement, ...] = ()


class WrittenCheck(Protocol):
    """As `Check`, for what only the file shows and the scenario no longer knows."""

    code: str

    def __call__(self, document: Document) -> Iterator[Finding]: ...


class Check(Protocol):
    """Looks at one scenario for one kind of mistake. Pure; never raises."""

    code: str
    """Like `OD010`; never given to another check, also after this one is gone."""

    def __call__(self, scenario: Scenario) -> Iterator[Finding]: ...


@dataclass(frozen=True, slots=True)
class Seen:
    """What earlier runs say of a pattern: runs and values looked at, and values that matched.

    `known` is False where the search came to no end on some value.
    """

    runs: int
    values: int
    matched: int
    known: bool = True


class RecordedRuns(Protocol):
    """The values of earlier runs of one scenario, a bounded number of them."""

    def seen(self, where: Where, pattern: str) -> Seen:
        """How many of the values of a target match a pattern that compiles."""


class RecordedCheck(Protocol):
    """As `Check`, for what only earlier runs show."""

    code: str

    def __call__(self, scenario: Scenario, recorded: RecordedRuns) -> Iterator[Finding]: ...
