"""A book of leases that ends with its process, for tests and trials."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from threading import RLock

from opsdrill.hosts.lease import Claim, Lease, Turn
from opsdrill.store.lease_course import Entry, Gone, granted, place_of, split, turn_of, waiting
from opsdrill.store.store import Owner


@dataclass(slots=True)
class LeaseRows:
    """What several `MemoryLeases` of one store have in common."""

    entries: dict[int, Entry] = field(default_factory=dict)
    last: int = 0
    lock: RLock = field(default_factory=RLock)


class MemoryLeases:
    """A `LeaseBook` over rows in memory; the arguments are those of `SqlLeases`."""

    def __init__(
        self,
        rows: LeaseRows,
        owner: Owner,
        gone: Gone,
        clock: Callable[[], datetime],
        seconds: float,
    ) -> None:
        self._rows = rows
        self._owner = owner
        self._gone = gone
        self._clock = clock
        self._lasts = timedelta(seconds=seconds)

    def take(self, claim: Claim) -> Turn:
        now = self._clock()
        with self._rows.lock:
            self.sweep()
            mine = place_of(claim, list(self._rows.entries.values()))
            if mine is None:
                self._rows.last += 1
                entry = waiting(claim, self._rows.last, now, now + self._lasts, self._owner)
                self._rows.entries[entry.lease.number] = entry
                mine = entry.lease
            turn = turn_of(claim, mine, list(self._rows.entries.values()))
            if turn.held and not mine.held:
                entry = self._rows.entries[mine.number]
                self._rows.entries[mine.number] = granted(entry, now, now + self._lasts)
            return turn

    def renew(self, numbers: Iterable[int]) -> set[int]:
        until = self._clock() + self._lasts
        with self._rows.lock:
            found = self._rows.entries.keys() & set(numbers)
            for number in found:
                entry = self._rows.entries[number]
                self._rows.entries[number] = replace(
                    entry, lease=replace(entry.lease, expires_at=until)
                )
            return found

    def release(self, number: int) -> None:
        with self._rows.lock:
            self._rows.entries.pop(number, None)

    def leases(self) -> list[Lease]:
        with self._rows.lock:
            live, _ = split(self._rows.entries.values(), self._clock(), self._gone)
        return [entry.lease for entry in live]

    def sweep(self) -> list[Lease]:
        with self._rows.lock:
            _, over = split(self._rows.entries.values(), self._clock(), self._gone)
            for entry in over:
                del self._rows.entries[entry.lease.number]
        return [entry.lease for entry in over]
