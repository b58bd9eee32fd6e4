"""Leases: a lasting host serves one run at a time, over all processes.

A run asks for all its hosts at once and gets all of them or none, in the order in which runs
asked, so nobody starves and no two runs wait for each other. A lease that is not renewed runs
out; one whose process is known to be gone ends at once. Its number grows with every lease, so a
holder that slept too long finds another number and knows that it lost.

The book is kept by the store; `app` wires it.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from opsdrill.model.lab import Lab, LabHost

LEASE_SECONDS = 30.0
"""How long a lease holds without being renewed."""


@dataclass(frozen=True, slots=True)
class PoolLimit:
    """At most `size` runs may hold any of these hosts at the same time.

    `hosts` are their keys, as in `Claim.hosts`.
    """

    name: str
    size: int
    hosts: frozenset[str]


@dataclass(frozen=True, slots=True)
class Claim:
    """What one attempt of a run asks for: machines by key, with the name that people know."""

    run: str
    attempt: int
    hosts: Mapping[str, str]
    pools: tuple[PoolLimit, ...] = ()


@dataclass(frozen=True, slots=True)
class Lease:
    """A claim in the book: held, or waiting for its turn.

    `since` is when it was granted, or when the run asked; `holder` is the process, in words.
    """

    number: int
    run: str
    attempt: int
    hosts: Mapping[str, str]
    held: bool
    since: datetime
    expires_at: datetime
    holder: str


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What keeps a claim waiting: another lease on some of its hosts, or a pool that is full."""

    lease: Lease
    names: tuple[str, ...]
    pool: PoolLimit | None = None

    def __str__(self) -> str:
        """Without what comes before: `web-01, held by run X since 12:00:00Z`."""
        by = f"run {self.lease.run}"
        if self.pool is not None:
            return f"a place in the pool {self.pool.name} ({self.pool.size} at a time), as {by} has"
        names = ", ".join(self.names)
        if not self.lease.held:
            return f"{names}, which {by} asked for before"
        return f"{names}, held by {by} since {self.lease.since:%Y-%m-%d %H:%M:%S}Z"


@dataclass(frozen=True, slots=True)
class Turn:
    """How a claim stands: its lease's number, and what is in the way; held when nothing is."""

    number: int
    obstacles: tuple[Obstacle, ...] = ()

    @property
    def held(self) -> bool:
        return not self.obstacles


class LeaseBook(Protocol):
    """Who holds which hosts, as one process sees and changes it. Calls are short; any thread.

    Every call raises StoreError where the book cannot be read or written.
    """

    def take(self, claim: Claim) -> Turn:
        """Ask for hosts, or ask again; a claim keeps its place while it is asked for or renewed."""

    def renew(self, numbers: Iterable[int]) -> set[int]:
        """Let leases, held or waiting, hold on from now; returns those that are still there."""

    def release(self, number: int) -> None:
        """End a lease; one that is not there any more is no error."""

    def leases(self) -> list[Lease]:
        """All leases that are not over, in the order asked."""

    def sweep(self) -> list[Lease]:
        """End those that ran out or whose process is gone; returns them."""


def obstacles(claim: Claim, others: Sequence[Lease]) -> tuple[Obstacle, ...]:
    """What is in the way of a claim.

    Args:
        claim: what is asked for.
        others: the leases that are held, and those that asked before this one.
    """
    found = []
    for other in others:
        names = tuple(name for key, name in claim.hosts.items() if key in other.hosts)
        if names:
            found.append(Obstacle(other, names))
    for pool in claim.pools:
        inside = [other for other in others if not pool.hosts.isdisjoint(other.hosts)]
        if len(inside) >= pool.size:
            found += [Obstacle(other, (), pool) for other in inside]
    return tuple(found)


def waiting_for(found: Sequence[Obstacle]) -> str:
    """`waiting for ...`, with the first thing in the way and how many more there are."""
    more = len({obstacle.lease.number for obstacle in found}) - 1
    first = min(found, key=lambda obstacle: not obstacle.lease.held)
    return f"waiting for {first}" + (f" (and {more} more)" if more > 0 else "")


def waits(leases: Sequence[Lease]) -> dict[str, str]:
    """What each run that waits is waiting for, by the run, as far as the book tells."""
    found = {}
    for lease in leases:
        if lease.held:
            continue
        before = [other for other in leases if other.held or other.number < lease.number]
        behind = obstacles(Claim(lease.run, lease.attempt, lease.hosts), before)
        names = ", ".join(lease.hosts.values())
        found[lease.run] = (
            waiting_for(behind) if behind else f"waiting for a place in a pool of {names}"
        )
    return found


def host_key(driver: str, name: str, host: LabHost | None, bastion: str | None = None) -> str:
    """What tells one machine from all others: driver, address and port, or its name.

    Args:
        driver: the driver's name.
        name: the host's name in the scenario.
        host: how to log in to it, where the lab says so.
        bastion: the key of the machine that the way to it goes through.
    """
    if driver == "local":  # whatever it is called, it is this very machine
        return f"local {platform.node()}"
    if host is None:
        return f"{driver} {name}"
    behind = f" via {bastion.removeprefix(f'{driver} ')}" if bastion else ""
    return f"{driver} {host.address.lower()}:{host.port}{behind}"


def claim_for(run: str, attempt: int, driver: str, names: Sequence[str], lab: Lab | None) -> Claim:
    """What a run asks for: the machines that its hosts are, and the pools that hold them."""

    def key(name: str) -> str:
        if lab is None or name not in lab.hosts:
            return host_key(driver, name, None)
        machine = lab.machine(name)
        bastion = key(machine.via) if machine.via is not None else None
        return host_key(driver, name, machine, bastion)

    hosts: dict[str, str] = {}
    for name in sorted(names):
        hosts.setdefault(key(name), name)
    pools = (
        PoolLimit(name, pool.size, frozenset(key(host) for host in pool.hosts))
        for name, pool in sorted(lab.pools.items() if lab else ())
    )
    limits = tuple(pool for pool in pools if not pool.hosts.isdisjoint(hosts))
    return Claim(run, attempt, dict(sorted(hosts.items())), limits)
