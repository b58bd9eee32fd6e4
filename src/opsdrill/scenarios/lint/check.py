"""What a check is: one coded thing that can be wrong with a scenario, in a file of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from opsdrill.errors import Severity
from opsdrill.model.problem import Location
from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.document import Document


@dataclass(frozen=True, slots=True)
class Finding:
    """One place where a check found something.

    Args:
        location: keys and indexes from the top of the scenario, e.g. `("validation", 2, "run")`.
        message: a sentence that follows the path: what is wrong and why.
        suggestion: what to write instead, where that can be said.
        severity: `error` (cannot be meant), `warning` (almost surely not meant) or `note`
            (depends on judgement).
    """

    location: Location
    message: str
    suggestion: str | None = None
    severity: Severity = "warning"


class WrittenCheck(Protocol):
    """As `Check`, for what only the file shows and the scenario no longer knows."""

    code: str

    def __call__(self, document: Document) -> Iterator[Finding]: ...


class Check(Protocol):
    """Looks at one scenario for one kind of mistake. Pure; never raises."""

    code: str
    """Like `OD010`; never given to another check, also after this one is gone."""

    def __call__(self, scenario: Scenario) -> Iterator[Finding]: ...
