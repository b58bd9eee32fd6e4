"""Scenarios: listed, read, edited, checked; their versions and files."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from opsdrill.model.scenario import Scenario
from opsdrill.wire.body import Told
from opsdrill.wire.problems import ProblemItem

Origin = Literal["kept", "pack", "folder"]
"""Where a scenario is: in the store, where it can be edited; in a pack that comes along, or in a
folder of the settings, where it is only read."""

EXAMPLE: dict[str, object] = {
    "key": "disk-full",
    "title": "The disk of a web server is full",
    "tags": ["disk"],
    "ticket_title": "web-01 answers with errors",
    "ticket_body": "Since this morning every upload fails.",
    "hosts": ["web-01"],
    "setup": [{"run": "mkdir -p /srv/full && truncate -s 1M /srv/full/core"}],
    "validation": [
        {"label": "The dump is gone", "validator": "host_state", "run": "test ! -e /srv/full/core"},
        {
            "label": "Nothing was rebooted",
            "validator": "pattern_match",
            "where": "executed_commands",
            "pattern": r"^\s*(sudo\s+)?reboot\b",
            "negate": True,
        },
    ],
}
"""A scenario as it is sent."""

ShownKey = Annotated[str, Field(examples=["disk-full"])]
Digest = Annotated[
    str, Field(examples=["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15"])
]
"""SHA-256 in hex."""


class ScenarioRow(Told):
    """A scenario as a listing shows it."""

    key: ShownKey
    title: str = Field(examples=["The disk of a web server is full"])
    tags: list[str] = Field(default=[], examples=[["disk"]])
    hosts: list[str] = Field(default=[], examples=[["web-01"]])
    rules: int = Field(examples=[2])
    origin: Origin
    pack: str | None = Field(default=None, examples=["basics"])
    number: int = Field(examples=[3])
    """Counts the edits of one in the store, from 1; 0 for one in a file."""
    version: Digest | None = None
    """None: it is broken, see `problems`."""
    changed_at: datetime | None = None
    by: str | None = Field(default=None, examples=["nightly drills"])
    """The name of the token that made this version."""
    problems: list[ProblemItem] = Field(default_factory=list)
    """What is wrong with one in a file."""


class ScenarioPage(Told):
    """Some scenarios, by key."""

    scenarios: list[ScenarioRow]
    cursor: str | None = None
    """Give it back for the next page; there is none at the end."""


class FileTold(Told):
    """A support file of a scenario."""

    path: str = Field(examples=["files/app.conf"])
    size: int = Field(examples=[1204])
    """In bytes."""
    digest: Digest


class ScenarioTold(Told):
    """One scenario in full, every default written out."""

    scenario: Scenario
    origin: Origin
    number: int = Field(examples=[3])
    """Counts the edits of one in the store, from 1; 0 for one in a file."""
    version: Digest
    """Of the scenario with its files; a run keeps the exact version that it ran."""
    files: list[FileTold] = Field(default_factory=list)
    created_at: datetime | None = None
    changed_at: datetime | None = None
    by: str | None = Field(default=None, examples=["nightly drills"])
    warnings: list[ProblemItem] = Field(default_factory=list)
    """After a change: what lint warns of."""


class FileList(Told):
    """The files that are kept with a scenario."""

    files: list[FileTold]


class VersionTold(Told):
    """One version of a scenario; a file knows neither when nor by whom it was made."""

    number: int = Field(examples=[3])
    version: Digest
    created_at: datetime | None = None
    by: str | None = Field(default=None, examples=["nightly drills"])


class VersionList(Told):
    """All versions of a scenario, the latest first."""

    key: ShownKey
    versions: list[VersionTold]


class Validated(Told):
    """What is wrong with a scenario's text."""

    valid: bool
    """Nothing in it is an error: it could be kept."""
    key: str | None = Field(default=None, examples=["disk-full"])
    version: Digest | None = None
    """The version that it would be; none where it cannot be read."""
    problems: list[ProblemItem]
