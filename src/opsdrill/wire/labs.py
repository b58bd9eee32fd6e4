"""Agents, labs, hosts and leases."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from opsdrill.wire.body import Told


class AgentTold(Told):
    """An agent that runs can be started with."""

    name: str = Field(examples=["careful"])
    adapter: str = Field(examples=["llm"])
    means: str
    """What it is, in words; the argument that the server's file gives it is not told."""


class AgentList(Told):
    agents: list[AgentTold]


class LabTold(Told):
    """A lab that runs can be started in."""

    name: str = Field(examples=["staging"])
    driver: str = Field(examples=["ssh"])
    hosts: list[str]
    """The names of its machines; none: its hosts are made for each run."""
    images: list[str]
    pools: dict[str, int]
    """How many runs may hold hosts of a pool at once."""
    default: bool = False
    """It is taken where nobody names one."""
    problem: str | None = None
    """Why it cannot be used."""


class LabList(Told):
    labs: list[LabTold]


class FindingTold(Told):
    """One thing that was found out about a driver or a host."""

    what: str
    good: bool
    detail: str = ""
    remedy: str | None = None
    blocks: bool = False
    host: str | None = None


class HostHealth(Told):
    name: str
    answers: bool
    findings: list[FindingTold]


class LabHealth(Told):
    """Whether a lab can give hosts, found out just now by trying."""

    lab: str
    driver: str
    usable: bool
    made: bool
    """Its hosts are made for each run, so that there are none to look at."""
    findings: list[FindingTold]
    hosts: list[HostHealth]


class LeaseTold(Told):
    """A run that holds lasting hosts, or waits for them."""

    run: str
    attempt: int
    hosts: list[str]
    state: str = Field(examples=["held", "waiting"])
    since: datetime
    expires_at: datetime
    waits_for: str | None = None


class LeaseList(Told):
    leases: list[LeaseTold]
