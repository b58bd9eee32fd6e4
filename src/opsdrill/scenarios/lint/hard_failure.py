"""OD011: a scenario that can never pass, because only a hard failure would do."""

from __future__ import annotations

from collections.abc import Iterator

from opsdrill.model.rules import JobResolutionStatus
from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.lint.check import Finding


class OnlyHardFailure:
    code = "OD011"

    def __call__(self, scenario: Scenario) -> Iterator[Finding]:
        for index, rule in enumerate(scenario.validation):
            if (
                isinstance(rule, JobResolutionStatus)
                and rule.required
                and set(rule.statuses) == {"hard_failure"}
            ):
                yield Finding(
                    ("validation", index, "statuses"),
                    "lists only hard_failure, with which the completion check always fails, so "
                    "the scenario can never pass; only agentic_failure makes that check skip",
                )
