"""OD012: a rule on `task_plan`, which never has a value."""

from __future__ import annotations

from collections.abc import Iterator

from opsdrill.model.rules import PatternMatch
from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.lint.check import Finding


class TaskPlan:
    code = "OD012"

    def __call__(self, scenario: Scenario) -> Iterator[Finding]:
        for index, rule in enumerate(scenario.validation):
            if isinstance(rule, PatternMatch) and rule.where == "task_plan":
                outcome = "always passes" if rule.negate else "always fails"
                yield Finding(
                    ("validation", index, "where"),
                    f"is task_plan, which never has a value, so the rule {outcome}; "
                    "use job_plan or task_description",
                )
