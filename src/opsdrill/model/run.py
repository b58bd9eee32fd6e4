"""A run: one scenario, one agent, one lab, as plain values that can be stored and sent."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from opsdrill.model.agent import AgentSettings
from opsdrill.model.fields import Instant, Items, Recorded
from opsdrill.model.lab import ROOT, Lab
from opsdrill.model.scenario import Scenario


class StoredFile(Recorded):
    """A support file as it was when the run was planned; its content lies in the store."""

    source: str
    digest: str
    """SHA-256 in hex."""
    size: int


class LabChoice(Recorded):
    """Which driver gives the hosts, and what it was told."""

    name: str
    driver: str
    options: dict[str, str] = {}
    folder: str | None = None
    """The folder that relative paths in `options` and in the lab start from."""
    lab: Lab | None = None
    """What the lab's file said; its secrets are still to be looked up."""
    digest: str | None = None
    """SHA-256 in hex over what the file means."""
    by_default: bool = False
    """Nobody named it: the first driver that could work was taken."""

    def user_of(self, host: str) -> str:
        """Who commands run as on a host when no step says otherwise."""
        return self.lab.user_of(host) if self.lab else ROOT


class AgentChoice(Recorded):
    """An adapter by name, its argument, and the folder that the argument is relative to."""

    adapter: str
    argument: str | None = None
    folder: str | None = None
    settings: AgentSettings | None = None
    """What an `agents.yaml` says beside that."""
    name: str | None = None
    """What an `agents.yaml` calls it."""

    def __str__(self) -> str:
        if self.name is not None:
            return self.name
        return self.adapter if self.argument is None else f"{self.adapter}:{self.argument}"


class RunSpec(Recorded):
    """Everything a run needs; nothing is looked up again later, so it can run anywhere."""

    id: Annotated[str, Field(min_length=1)]
    batch: str | None = None
    scenario: Scenario
    scenario_version: str
    scenario_folder: str | None = None
    files: Items[StoredFile] = ()
    agent: AgentChoice
    lab: LabChoice
    repeat: int = 1
    """The how-manieth repetition this is, from 1."""
    labels: dict[str, str] = {}
    created_at: Instant
    masked: Items[str] = ()
    """The secrets that stood in it, and are masked here: such a run cannot be worked off again
    from what was kept."""
