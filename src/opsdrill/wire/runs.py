"""Runs: starting them, listing them, and what is kept of one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from opsdrill.errors import Fault
from opsdrill.model.host import ChangedFile, HostAnswer, HostFacts
from opsdrill.model.result import Phase, RunState, Verdict
from opsdrill.wire.body import Asked, Told

Word = Annotated[str, StringConstraints(min_length=1, max_length=200)]
LabelName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$")]
LabelValue = Annotated[str, StringConstraints(max_length=200)]
Labels = Annotated[
    dict[LabelName, LabelValue],
    Field(max_length=20, json_schema_extra={"additionalProperties": False}),
]


class RunsAsked(Asked):
    """What is to be run. Everything is a name that is known to the server: never a path, an
    address, a program, or an argument of an agent."""

    scenarios: list[Word] = Field(
        min_length=1, max_length=200, examples=[["full-disk", "tag:web", "pack:basics"]]
    )
    """Keys, `tag:NAME` or `pack:NAME`."""
    agents: list[Word] = Field(min_length=1, max_length=50, examples=[["noop"]])
    """Names that `GET /agents` lists; each works every scenario."""
    lab: Word | None = Field(default=None, examples=["sandbox"])
    """A name that `GET /labs` lists; without it the default."""
    repeat: int = Field(default=1, ge=1, le=1000)
    """How often each agent works each scenario."""
    parallel: int | None = Field(default=None, ge=1, le=1000)
    """How many of these runs work at once, where fewer than the server allows."""
    labels: Labels = Field(default={}, examples=[{"commit": "1f3c9a7"}])


class FractionTold(Told):
    passed: int
    total: int


class RunTold(Told):
    """A run as a listing shows it."""

    id: str = Field(examples=["20261130-231217-1f3c9a7e"])
    batch: str | None
    scenario: str = Field(examples=["full-disk"])
    title: str
    agent: str = Field(examples=["noop"])
    lab: str = Field(examples=["sandbox"])
    repeat: int
    state: RunState
    verdict: Verdict | None = None
    fault: Fault | None = None
    reason: str = ""
    """Why it has its verdict; of one that waits for hosts, what it waits for."""
    compliance: FractionTold | None = None
    remediation: FractionTold | None = None
    after_agent: bool = False
    created_at: datetime
    ended_at: datetime | None = None


class RunsStarted(Told):
    """The runs that were planned, in their order."""

    batch: str
    runs: list[RunTold]


class RunList(Told):
    """Some runs, and the cursor of the next page; null at the end."""

    runs: list[RunTold]
    cursor: str | None = None
    count: int
    """How many runs the filters let through; counting stops at 10,000."""


class ClaimTold(Told):
    """A call that only one of the two stories tells."""

    host: str
    call: dict[str, Any]


class DifferencesTold(Told):
    """Where the agent's own report and what was seen differ."""

    by: str | None
    """The program whose report was read; null: there is none."""
    never_run: list[ClaimTold]
    not_reported: list[ClaimTold]


class RunDetail(RunTold):
    """One run, without what it left: that has addresses of its own."""

    labels: dict[str, str] = Field(default={})
    scenario_version: str
    attempt: int
    started_at: datetime | None = None
    phases: list[Phase] = Field(default=[])
    waits_for: str | None = Field(
        default=None, examples=["waiting for web-01, held by run 20261130-231200-0a1b2c3d"]
    )
    """The hosts that it waits for."""
    warnings: list[str] = Field(default=[])
    links: dict[str, str] = Field(default={})
    """Where the rest is."""


class RunRetried(Told):
    """The run that repeats another."""

    run: str
    retry_of: str


class PhaseList(Told):
    """The phases that began, in order."""

    phases: list[Phase]


class GradeTold(Told):
    """One grade of a run in short."""

    number: int
    cause: str = Field(examples=["run", "regrade"])
    by: str | None
    created_at: datetime
    scenario_version: str | None
    verdict: Verdict
    reason: str
    fault: Fault | None
    compliance: FractionTold | None
    remediation: FractionTold | None


class GradeList(Told):
    """Every grade of a run, the first first; the last one counts."""

    grades: list[GradeTold]


class StepsTold(Told):
    """What hosts answered in one phase."""

    phase: str
    answers: list[HostAnswer]


class HostTold(Told):
    """One host of a run."""

    facts: HostFacts
    changed_files: int | None
    """How many files changed since setup; null: the driver cannot tell."""


class RunHosts(Told):
    """The hosts of a run: what they were made of, and what they answered."""

    hosts: list[HostTold]
    answers: list[HostAnswer]
    """To the rules, in the order asked."""
    steps: list[StepsTold]


class HostChanges(Told):
    """The files that changed on one host since setup; null: the driver cannot tell."""

    host: str
    changes: list[ChangedFile] | None


class SupportFileTold(Told):
    """A support file as the run's hosts got it."""

    source: str
    digest: str
    size: int


class RunFiles(Told):
    """The files of a run."""

    changed: list[HostChanges]
    support: list[SupportFileTold]
    """Their content is under `files/DIGEST`."""


class EvidenceItem(Told):
    """One piece of a job record."""

    number: int
    """Its place in the record, from 0."""
    kind: str = Field(examples=["call"])
    """`plan`, `task`, `call`, `message`, `ticket` or `resolution`."""
    task: str | None = None
    host: str | None = None
    turn: int | None = None
    at: datetime | None = None
    content: dict[str, Any]
    """The piece itself, as the job record has it; of a task without its calls and messages."""
    cut: dict[str, int] = Field(default={})
    """Texts of the content that are cut here, with the characters of the whole; `GET
    /runs/{run}/evidence/{number}` has it."""


class EvidencePage(Told):
    """Some of a job record, in its order, and the cursor of the next page; null at the end."""

    items: list[EvidenceItem]
    cursor: str | None = None
    coverage: dict[str, Any]
    """How much of each kind of evidence the record holds."""
    sealed: bool
    """False while the run goes on, or where it was killed: then this is what was recorded."""


class ScenarioRan(Told):
    """The scenario exactly as a run ran it, secrets masked."""

    version: str
    scenario: dict[str, Any]
