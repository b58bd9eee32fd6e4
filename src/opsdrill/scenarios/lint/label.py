"""OD010: two rules with the same label, which a reader of the results cannot tell apart."""

from __future__ import annotations

from collections.abc import Iterator

from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.lint.check import Finding


class LabelTwice:
    code = "OD010"

    def __call__(self, scenario: Scenario) -> Iterator[Finding]:
        first: dict[str, int] = {}
        for index, rule in enumerate(scenario.validation):
            earlier = first.setdefault(rule.label, index)
            if earlier != index:
                yield Finding(
                    ("validation", index, "label"),
                    f"is the label of validation[{earlier}] too; results will look alike",
                )
