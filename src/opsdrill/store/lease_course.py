"""What every book of leases decides alike: who is first, who is in the way, whose time is over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from opsdrill.hosts.lease import Claim, Lease, Turn, obstacles
from opsdrill.store.store import Owner

Gone = Callable[[Owner], bool]
"""Whether a process is known to live no more."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A lease with the process that it belongs to."""

    lease: Lease
    owner: Owner


def split(entries: Iterable[Entry], now: datetime, gone: Gone) -> tuple[list[Entry], list[Entry]]:
    """The entries that still count, in the order asked, and those that are over."""
    known: dict[Owner, bool] = {}

    def lost(owner: Owner) -> bool:
        if owner not in known:
            known[owner] = gone(owner)
        return known[owner]

    live: list[Entry] = []
    over: list[Entry] = []
    for entry in sorted(entries, key=lambda entry: entry.lease.number):
        ended = entry.lease.expires_at <= now or lost(entry.owner)
        (over if ended else live).append(entry)
    return live, over


def place_of(claim: Claim, live: Sequence[Entry]) -> Lease | None:
    """The lease of this very claim."""
    for entry in live:
        if (entry.lease.run, entry.lease.attempt) == (claim.run, claim.attempt):
            return entry.lease
    return None


def turn_of(claim: Claim, mine: Lease, live: Sequence[Entry]) -> Turn:
    """How a claim stands: behind whoever holds, and whoever waits since before."""
    if mine.held:
        return Turn(mine.number)
    others = [
        entry.lease
        for entry in live
        if entry.lease.number != mine.number
        and (entry.lease.held or entry.lease.number < mine.number)
    ]
    return Turn(mine.number, obstacles(claim, others))


def holder(owner: Owner) -> str:
    """A process in words."""
    return f"process {owner.pid} on {(owner.machine.split() or ['an unknown machine'])[0]}"


def waiting(claim: Claim, number: int, now: datetime, until: datetime, owner: Owner) -> Entry:
    """A claim as it comes into the book."""
    lease = Lease(
        number=number,
        run=claim.run,
        attempt=claim.attempt,
        hosts=claim.hosts,
        held=False,
        since=now,
        expires_at=until,
        holder=holder(owner),
    )
    return Entry(lease, owner)


def granted(entry: Entry, now: datetime, until: datetime) -> Entry:
    """The entry once it holds its hosts."""
    return replace(entry, lease=replace(entry.lease, held=True, since=now, expires_at=until))
