"""Grading: what recorded jobs are by a scenario's rules, kept runs graded again, patterns tried."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from opsdrill.errors import Fault
from opsdrill.model.fields import Instant
from opsdrill.model.job import Coverage
from opsdrill.model.result import Result, Verdict
from opsdrill.model.rules import Where
from opsdrill.wire.body import Asked, Told
from opsdrill.wire.problems import ProblemItem

Word = Annotated[str, StringConstraints(min_length=1, max_length=200)]
LabelValue = Annotated[str, StringConstraints(max_length=200)]

JOB: dict[str, object] = {
    "format": "opsdrill.job/1",
    "job": {"id": "job-1", "status": "completed", "resolution": "success"},
    "tasks": [
        {
            "id": "task-1",
            "host": "web-01",
            "status": "completed",
            "tool_calls": [
                {
                    "kind": "shell",
                    "arguments": {"command": "rm /srv/full/core"},
                    "outcome": "ran",
                    "exit_code": 0,
                }
            ],
        }
    ],
    "coverage": {"default": {"state": "whole"}},
}
"""A job record as it is sent."""


class GradeAsked(Asked):
    """A recorded job to be graded: the rules, one of `record`, `text` and `base64`, and what the
    hosts answered."""

    scenario: str | dict[str, Any] = Field(examples=["disk-full"])
    """A key, or a whole scenario."""
    record: dict[str, Any] | None = Field(default=None, examples=[JOB])
    """A job record, or another tool's transcript that is one JSON document."""
    text: str | None = None
    """A transcript as text, such as JSON Lines."""
    base64: str | None = None
    """Any file that an importer reads, in base64."""
    answers: list[dict[str, Any]] = Field(
        default_factory=list,
        examples=[[{"on": "web-01", "run": "test ! -e /srv/full/core", "exit_code": 0}]],
    )
    """As in the file of `--host-answers`; without it every rule that asks a host is `error`."""
    host: str | None = None
    """The host of whatever names none."""
    split_ssh: bool = False
    """Take `ssh HOST COMMAND` for a command of that host."""


class JobGraded(Told):
    """One recorded job with its result."""

    job: str
    """What the file calls it; empty where it has no name."""
    format: str = Field(examples=["job"])
    commands: int
    """How many shell commands its record holds."""
    coverage: Coverage
    """What its record can know."""
    result: Result


class RecordGraded(Told):
    """The results of the jobs of a record, in its order."""

    results: list[JobGraded]
    report: str = Field(examples=["**1 passed of 1**"])
    """All of them in Markdown, as `opsdrill grade --format markdown` writes them. What agents and
    hosts said is literal in it."""


class RecordKept(Told):
    """One job that is a run now."""

    run: str = Field(examples=["import-423ba21bab7eecb9"])
    job: str
    format: str = Field(examples=["claude-code"])
    verdict: Verdict | None
    reason: str
    commands: int
    warnings: list[str] = Field(default_factory=list)


class RecordKnown(Told):
    """One job that was a run already, of the same bytes read in the same way."""

    run: str = Field(examples=["import-423ba21bab7eecb9"])
    job: str
    format: str
    other_rules: bool
    """The scenario has other rules by now than when the run was kept."""


class RecordsKept(Told):
    """What became of a file of recorded jobs."""

    batch: str
    runs: list[RecordKept]
    known: list[RecordKnown] = Field(default_factory=list)
    refused: list[str] = Field(default_factory=list)
    """Why the rest of the file could not be read."""


class RunsWanted(Asked):
    """Runs that all of this lets through; only such as are done are graded again."""

    scenario: Word | None = Field(default=None, examples=["disk-full"])
    tag: Word | None = None
    agent: Word | None = None
    verdict: Verdict | None = None
    fault: Fault | None = None
    batch: Word | None = None
    labels: dict[Word, LabelValue] = Field(default_factory=dict, max_length=20)
    since: Instant | None = None
    until: Instant | None = None


class RegradeAsked(Asked):
    """Runs to be graded again: `runs` by their ids, or those that `filter` lets through, or all."""

    runs: list[Word] | None = Field(default=None, min_length=1, max_length=1000)
    filter: RunsWanted | None = None
    rules: str | dict[str, Any] | None = Field(default=None, examples=["disk-full"])
    """Where the rules are taken from: the key of a scenario as it is now, or a whole scenario.
    Without it each run's own. They are for runs of the scenario with that key."""
    preview: bool = True
    """Only tell what would flip; otherwise new grades are kept, which takes the role `edit`."""


class FlipTold(Told):
    """One thing that another grade judges otherwise."""

    run: str
    scenario: str
    rule: str = Field(examples=["[1] Nothing was rebooted"])
    """`[INDEX] LABEL`; `verdict` or `completion` for the run itself."""
    before: str = Field(examples=["passed"])
    after: str = Field(examples=["failed"])
    reason: str


class FlipsCounted(Told):
    """How many runs flipped in one way."""

    scenario: str
    rule: str
    before: str
    after: str
    runs: int


class RegradeRow(Told):
    """A regrade as it stands."""

    id: str = Field(examples=["5f3a9c0d1e2b4a67"])
    state: Literal["waiting", "running", "done", "failed", "cancelled"]
    preview: bool
    by: str | None = None
    created_at: datetime
    ended_at: datetime | None = None
    total: int
    """Runs that are looked at; 0 as long as they are not counted."""
    seen: int
    """How many were looked at so far."""
    graded: int
    changed: int
    """How many got another grade than their latest."""
    flip_count: int
    reason: str | None = None
    """Why it failed."""


class RegradeTold(RegradeRow):
    """A regrade with what flipped so far."""

    summary: list[FlipsCounted]
    """The most first."""
    flips: list[FlipTold]
    """One page of the first 10,000 flips; `summary` counts all of them."""
    cursor: str | None = None
    """Give it back for the next flips; there is none at the end of those there are so far."""
    notes: list[str]
    """What is to be said of runs, such as those that were left out."""


class RegradeList(Told):
    """The regrades that the server remembers, the newest first."""

    regrades: list[RegradeRow]


class PatternAsked(Asked):
    """A pattern to be tried on what kept runs of a scenario showed."""

    scenario: str = Field(max_length=100, examples=["disk-full"])
    """The key of the scenario whose runs are looked at."""
    pattern: str = Field(max_length=20_000, examples=[r"\brm\b"])
    where: Where = Field(examples=["executed_commands"])
    negate: bool = False
    """The rule is a must-not rule: it would hold where nothing matches."""
    validation: list[dict[str, Any]] | None = None
    """Rules that the runs are graded by as well, to tell how many verdicts would flip."""
    runs: int = Field(default=50, ge=1, le=100)
    """How many of the last runs are looked at."""


class ValueMatched(Told):
    """A value that matches, or the part of a long one around the match."""

    run: str
    task: str | None = None
    item: int
    """The value's place among all of its run, from 0."""
    value: str
    span: tuple[int, int]
    """Where the first match is in `value`, in code points, the end exclusive."""
    cut: int | None = None
    """Where `value` is a part: how many code points of the whole stand before it."""


class FlipsFound(Told):
    """What runs would be judged otherwise by the rules that were sent."""

    graded: int
    verdicts: int
    """How many verdicts would flip."""
    flips: list[FlipTold]
    notes: list[str] = Field(default_factory=list)


class PatternTried(Told):
    """What came of it."""

    runs: int
    """How many runs were looked at."""
    holds: int
    """In how many of them such a rule, with `negate` as it was sent, would hold as far as values
    go; what a record cannot know is not counted here."""
    values: int
    matched: int
    exhausted: int
    """Values of which it is not known, for the search used up its time."""
    matches: list[ValueMatched]
    """The first 100."""
    flips: FlipsFound | None = None
    limits: list[str] = Field(default_factory=list)
    """What was not looked at, and why."""
    warnings: list[ProblemItem] = Field(default_factory=list)
    """What lint says of the pattern."""
