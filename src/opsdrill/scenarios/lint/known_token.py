r"""OD060: a scenario that holds a token, or a rule that looks for one.

Keys and tokens of well-known shapes are masked before anything is kept. So a rule that looks for
`AKIA[0-9A-Z]{16}` never finds one, and one that forbids it always passes.
"""

from __future__ import annotations

from collections.abc import Iterator

from opsdrill.model.problem import Location
from opsdrill.model.rules import PatternMatch
from opsdrill.model.scenario import Scenario
from opsdrill.patterns.tokens import sought_token, tokens_in
from opsdrill.scenarios.lint.check import Finding


class TokenInScenario:
    code = "OD060"

    def __call__(self, scenario: Scenario) -> Iterator[Finding]:
        for location, text in _texts((), scenario.model_dump(mode="json", by_alias=True)):
            for name in tokens_in(text):
                yield Finding(
                    location,
                    f"holds what looks like a real {name}; in all that is kept of a run it reads"
                    f" [masked:{name}]",
                    rf"look for \[masked:{name}\]"
                    if location[-1] == "pattern"
                    else "take it out; where a drill needs one, let a setup step make it up",
                )
        for index, rule in enumerate(scenario.validation):
            sought = sought_token(rule.pattern) if isinstance(rule, PatternMatch) else None
            if isinstance(rule, PatternMatch) and sought is not None:
                outcome = "always passes" if rule.negate else "never finds one"
                yield Finding(
                    ("validation", index, "pattern"),
                    f"looks for a {sought}, which is masked before it is kept, so it {outcome}",
                    better=(rf"{rule.pattern}|\[masked:{sought}\]",),
                )


def _texts(location: Location, value: object) -> Iterator[tuple[Location, str]]:
    """Every text of a scenario, with its place."""
    if isinstance(value, str):
        yield location, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts((*location, str(key)), item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts((*location, index), item)
