"""Comparisons of sets of runs, and trends."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from opsdrill.model.fields import Instant
from opsdrill.wire.body import Asked, Told
from opsdrill.wire.runs import Labels, Word


class SetAsked(Asked):
    """A set of runs: those that all its filters let through."""

    name: Word = Field(examples=["before"])
    scenario: Word | None = None
    tag: Word | None = None
    agent: Word | None = None
    batch: Word | None = Field(default=None, examples=["20261130-231217-0a1b2c3d"])
    labels: Labels = Field(default={})
    runs: list[Word] | None = Field(default=None, min_length=1, max_length=200)
    """These very runs."""
    since: Instant | None = None
    until: Instant | None = None


class ComparisonAsked(Asked):
    """Two or more sets; the first is what the others are held against."""

    sets: list[SetAsked] = Field(min_length=2, max_length=10)
    by: list[Literal["scenario", "agent"]] = Field(
        default=["scenario", "agent"], min_length=1, max_length=2
    )
    """What a line of the grid stands for. Leave `agent` out to compare one agent with another."""


class CellTold(Told):
    """What one set has for one line of the grid."""

    runs: int
    passed: int
    failed: int
    error: int
    """Runs that say nothing of the agent; they are in no rate."""
    pass_rate: float | None
    """Passed of passed and failed; null where nothing was judged."""
    compliance: float | None
    """The mean share of rules that held, over the judged runs."""


class RuleFlip(Told):
    """A rule that another set judges otherwise."""

    rule: str
    set: str
    before: str = Field(examples=["3 of 3 passed"])
    after: str = Field(examples=["1 of 3 passed"])
    change: Literal["worse", "better", "unknown"]
    runs: list[str]
    """Some runs of that set where it did not hold."""


class LineTold(Told):
    """One line of the grid: a scenario worked by an agent."""

    scenario: str | None
    agent: str | None
    cells: dict[str, CellTold | None]
    """By the name of the set; null: it has no such run."""
    change: Literal["worse", "same", "better", "unknown"]
    """Of the set that is worst, held against the first."""
    flips: list[RuleFlip]


class SetTold(Told):
    name: str
    runs: int
    cut: bool
    """More runs than are compared; the newest were taken."""
    scenario_versions: int
    """More than one for some scenario: the rules were not the same."""


class ComparisonTold(Told):
    """The grid, regressions first."""

    sets: list[SetTold]
    lines: list[LineTold]
    warnings: list[str] = Field(default=[])


class TrendPoint(Told):
    """What became of the runs of one span of time."""

    since: datetime
    until: datetime
    runs: int
    passed: int
    failed: int
    error: int
    pass_rate: float | None
    """Passed of passed and failed; errors say nothing of the agent."""
    error_rate: float | None
    """Errors of all runs that are over."""
    compliance: float | None
    remediation: float | None


class TrendTold(Told):
    """Verdicts and compliance over time."""

    scenario: str | None
    tag: str | None
    agent: str | None
    points: list[TrendPoint]
    cut: bool
    """More runs than are counted; the newest were taken."""
