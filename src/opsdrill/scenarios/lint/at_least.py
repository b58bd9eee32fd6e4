"""OD013: `at_least` smaller than the list of hosts beside it, which then says nothing."""

from __future__ import annotations

from collections.abc import Iterator

from opsdrill.model.rules import Turns
from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.lint.check import Finding


class AtLeastTooSmall:
    code = "OD013"

    def __call__(self, scenario: Scenario) -> Iterator[Finding]:
        for index, rule in enumerate(scenario.validation):
            if not isinstance(rule, Turns):
                continue
            for turn, item in enumerate(rule.turns):
                listed = len(item.hosts or ())
                if item.at_least is not None and item.at_least < listed:
                    yield Finding(
                        ("validation", index, "turns", turn, "at_least"),
                        f"is {item.at_least}, but `hosts` asks for {listed} already; all it does "
                        "is allow hosts that are not listed",
                    )
