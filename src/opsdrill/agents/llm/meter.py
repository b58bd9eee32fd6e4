"""Budgets: what the models of one job used up, and when that was too much."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from opsdrill.errors import AgentUnavailable
from opsdrill.model.agent import Budgets
from opsdrill.model.job import Usage


class BudgetSpent(Exception):
    """The job ran into a budget: the agent's own limit."""


@dataclass(slots=True)
class Tally:
    """What was used up so far.

    Attributes:
        cost: US dollars; None while no price is known of anything.
        unpriced: answers whose price is not known.
        unmeasured: answers that did not say how many tokens they took.
    """

    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Decimal | None = None
    unpriced: int = 0
    unmeasured: int = 0

    def add(self, read: int | None, written: int | None, cost: Decimal | None) -> None:
        """Count one answer; None: not known."""
        self.unmeasured += read is None or written is None
        self.input_tokens += read or 0
        self.output_tokens += written or 0
        self.unpriced += cost is None
        if cost is not None:
            self.cost = (self.cost or Decimal(0)) + cost

    def usage(self) -> Usage:
        """As the record keeps it; a sum of which a part is not known is not known."""
        counted = not self.unmeasured
        cost = self.cost if not self.unpriced else None
        return Usage(
            model=self.model,
            input_tokens=self.input_tokens if counted else None,
            output_tokens=self.output_tokens if counted else None,
            cost_usd=None if cost is None else float(cost),
        )


@dataclass(slots=True)
class Meter:
    """Holds what the whole job uses up against its budgets."""

    model: str
    budgets: Budgets
    whole: Tally = field(init=False)

    def __post_init__(self) -> None:
        self.whole = Tally(self.model)

    def check(self) -> None:
        """Make sure that all budgets hold.

        Raises:
            BudgetSpent: one is spent.
            AgentUnavailable: whether one is spent cannot be known.
        """
        limit = self.budgets
        if limit.tokens is not None:
            if self.whole.unmeasured:
                raise self._unknown("tokens", "does not say how many tokens it used")
            used = self.whole.input_tokens + self.whole.output_tokens
            if used > limit.tokens:
                raise BudgetSpent(
                    f"the budget of {limit.tokens} tokens was spent: {used} were used"
                )
        if limit.cost_usd is not None:
            if self.whole.unpriced:
                raise self._unknown("cost_usd", "has no known price")
            cost = self.whole.cost
            if cost is not None and cost > Decimal(str(limit.cost_usd)):
                raise BudgetSpent(f"the budget of ${limit.cost_usd:g} was spent: ${cost:.4f}")

    def _unknown(self, budget: str, why: str) -> AgentUnavailable:
        return AgentUnavailable(
            f"the budget `{budget}` cannot be kept: the model {self.model} {why}",
            hint=f"take `{budget}` out of the agents file, or choose another model",
        )
