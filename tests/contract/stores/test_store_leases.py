"""The book of leases: a lasting host serves one run at a time, and nobody waits for ever.

Whichever process a run works in, it has the host to itself; the lease is over with the run, or with
its process.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from opsdrill.hosts.lease import Claim, LeaseBook, PoolLimit
from opsdrill.store.store import Owner, Store

HERE = Owner("here id pid:[1]", "boot", 10, 1000)
THERE = Owner("there id pid:[1]", "boot", 20, 2000)
SECONDS = 30.0


class Clock:
    """A clock that only the test moves."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 31, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def later(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class Books:
    """Two processes on one store; `dead` are those known to live no more."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.dead: set[Owner] = set()
        self.clock = clock
        self.store = store
        self.here = self.of(HERE)
        self.there = self.of(THERE)

    def of(self, owner: Owner) -> LeaseBook:
        return self.store.leases(owner, self.dead.__contains__, seconds=SECONDS)

    def held(self) -> list[str]:
        return [lease.run for lease in self.here.leases() if lease.held]


@pytest.fixture
def books(make_store: Callable[[Callable[[], datetime]], Store]) -> Books:
    clock = Clock()
    return Books(make_store(clock), clock)


def claim(run: str, *hosts: str, pools: tuple[PoolLimit, ...] = ()) -> Claim:
    return Claim(run, 1, {f"ssh {host}:22": host for host in hosts}, pools)


def test_a_free_host_is_had_at_once_and_kept(books: Books) -> None:
    turn = books.here.take(claim("r1", "web-01"))
    assert turn.held
    assert books.here.take(claim("r1", "web-01")) == turn
    (lease,) = books.there.leases()
    assert (lease.run, lease.attempt, lease.held) == ("r1", 1, True)
    assert lease.hosts == {"ssh web-01:22": "web-01"}
    assert lease.holder == "process 10 on here"


def test_another_run_waits_over_all_processes_and_is_told_for_what(books: Books) -> None:
    books.here.take(claim("r1", "web-01", "db-01"))
    turn = books.there.take(claim("r2", "web-01", "web-02"))
    assert not turn.held
    (obstacle,) = turn.obstacles
    assert (obstacle.lease.run, obstacle.names) == ("r1", ("web-01",))
    assert str(obstacle) == "web-01, held by run r1 since 2026-01-31 12:00:00Z"


def test_other_hosts_are_free(books: Books) -> None:
    assert books.here.take(claim("r1", "web-01")).held
    assert books.there.take(claim("r2", "web-02")).held


def test_a_released_host_goes_to_who_waits(books: Books) -> None:
    first = books.here.take(claim("r1", "web-01"))
    books.there.take(claim("r2", "web-01"))
    books.here.release(first.number)
    books.here.release(first.number)
    assert books.there.take(claim("r2", "web-01")).held


def test_all_hosts_or_none(books: Books) -> None:
    """A run that waits for one of its hosts holds none of the others."""
    first = books.here.take(claim("r1", "web-01"))
    assert not books.there.take(claim("r2", "web-01", "web-02")).held
    assert books.held() == ["r1"]
    books.here.release(first.number)
    assert books.there.take(claim("r2", "web-01", "web-02")).held


def test_hosts_are_given_in_the_order_asked_so_that_nobody_starves(books: Books) -> None:
    """A run that needs two hosts is not passed by others that need one, one after the other."""
    first = books.here.take(claim("r1", "web-01"))
    books.there.take(claim("both", "web-01", "web-02"))
    later = books.here.take(claim("r3", "web-02"))
    assert not later.held
    assert str(later.obstacles[0]) == "web-02, which run both asked for before"
    books.here.release(first.number)
    assert books.there.take(claim("both", "web-01", "web-02")).held
    assert not books.here.take(claim("r3", "web-02")).held


def test_a_lease_that_is_not_renewed_runs_out(books: Books) -> None:
    first = books.here.take(claim("r1", "web-01"))
    books.clock.later(SECONDS - 1)
    assert not books.there.take(claim("r2", "web-01")).held
    books.clock.later(1)
    second = books.there.take(claim("r2", "web-01"))
    assert second.held
    assert second.number > first.number
    assert books.here.renew([first.number]) == set()


def test_a_lease_that_is_renewed_holds_on(books: Books) -> None:
    first = books.here.take(claim("r1", "web-01"))
    for _ in range(3):
        books.clock.later(SECONDS - 1)
        assert books.here.renew([first.number]) == {first.number}
        assert not books.there.take(claim("r2", "web-01")).held


def test_a_lease_of_a_dead_process_ends_at_once(books: Books) -> None:
    books.here.take(claim("r1", "web-01"))
    books.dead.add(HERE)
    assert books.there.take(claim("r2", "web-01")).held
    assert books.held() == ["r2"]


def test_who_waits_and_dies_keeps_nobody_waiting(books: Books) -> None:
    first = books.here.take(claim("r1", "web-01"))
    books.there.take(claim("r2", "web-01"))
    books.dead.add(THERE)
    books.here.release(first.number)
    assert books.here.take(claim("r3", "web-01")).held


def test_who_waits_too_long_without_a_word_goes_to_the_end(books: Books) -> None:
    first = books.here.take(claim("r1", "web-01"))
    waited = books.there.take(claim("r2", "web-01"))
    books.clock.later(SECONDS - 1)
    books.here.renew([first.number])
    books.clock.later(1)
    third = books.here.take(claim("r3", "web-01"))
    again = books.there.take(claim("r2", "web-01"))
    assert waited.number < third.number < again.number
    books.here.release(first.number)
    assert not books.there.take(claim("r2", "web-01")).held
    assert books.here.take(claim("r3", "web-01")).held


def test_a_number_is_never_used_again(books: Books) -> None:
    """The fencing token: who comes back after a pause cannot take another's lease for its own."""
    seen = []
    for run in ("r1", "r2", "r3"):
        number = books.here.take(claim(run, "web-01")).number
        books.here.release(number)
        seen.append(number)
    assert seen == sorted(set(seen))


def test_sweep_ends_what_is_over_and_tells(books: Books) -> None:
    books.here.take(claim("r1", "web-01"))
    books.there.take(claim("r2", "web-02"))
    assert books.there.sweep() == []
    books.dead.add(HERE)
    assert [lease.run for lease in books.there.sweep()] == ["r1"]
    assert books.there.sweep() == []
    assert books.held() == ["r2"]


def test_a_pool_lets_so_many_runs_in(books: Books) -> None:
    """At most `size` runs hold hosts of a pool at once, however many hosts are free."""
    keys = frozenset({"ssh web-01:22", "ssh web-02:22", "ssh web-03:22"})
    pools = (PoolLimit("staging", 2, keys),)
    first = books.here.take(claim("r1", "web-01", pools=pools))
    assert books.here.take(claim("r2", "web-02", pools=pools)).held
    third = books.there.take(claim("r3", "web-03", pools=pools))
    assert not third.held
    assert "a place in the pool staging (2 at a time)" in str(third.obstacles[0])
    assert books.there.take(claim("r4", "elsewhere")).held
    books.here.release(first.number)
    assert books.there.take(claim("r3", "web-03", pools=pools)).held


def test_a_claim_of_another_attempt_is_another_lease(books: Books) -> None:
    books.here.take(claim("r1", "web-01"))
    again = Claim("r1", 2, {"ssh web-01:22": "web-01"})
    assert not books.here.take(again).held


def test_many_at_once_never_share_a_host(books: Books) -> None:
    """Twenty takers on threads: one holds, each of the others waits for it."""

    def take(number: int) -> bool:
        owner = HERE if number % 2 else THERE
        return books.of(owner).take(claim(f"r{number:02}", "web-01")).held

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(take, range(20))) == 1
    leases = books.here.leases()
    assert len(leases) == 20
    assert sum(lease.held for lease in leases) == 1
