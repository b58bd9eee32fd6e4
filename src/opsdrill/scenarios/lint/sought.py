"""The patterns of a scenario, each with where it stands and what it is searched in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from opsdrill.model.problem import Location
from opsdrill.model.rules import PatternMatch, Where
from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.lint.expression import Expression, read

PATHS = frozenset({"write_file", "update_file"})
CALLS = frozenset({"tool_calls", "use_mcp_tool"})
COMMANDS = "executed_commands"


@dataclass(frozen=True, slots=True)
class Sought:
    """A pattern, `location` being that of its text.

    A reply waits for a message of the agent, so its `where` is `gateway_messages`.
    """

    location: Location
    text: str
    where: Where
    negate: bool = False

    @property
    def expression(self) -> Expression | None:
        """The pattern taken apart, where that can be done."""
        return read(self.text)

    @property
    def in_prose(self) -> bool:
        """Whether it is searched in what people and agents say, not in commands and paths."""
        return self.where not in PATHS and self.where not in CALLS and self.where != COMMANDS


def sought(scenario: Scenario) -> Iterator[Sought]:
    """Every pattern of a scenario, in the order of the rules, then of the replies."""
    for index, rule in enumerate(scenario.validation):
        if isinstance(rule, PatternMatch):
            location = ("validation", index, "pattern")
            yield Sought(location, rule.pattern, rule.where, rule.negate)
    for index, reply in enumerate(scenario.replies):
        yield Sought(("replies", index, "when"), reply.when, "gateway_messages")
