"""What a run asks for: machines told apart by where they are, and the pools that hold them."""

from __future__ import annotations

import platform
from datetime import UTC, datetime

import pytest

from opsdrill.hosts.lease import Claim, Lease, PoolLimit, claim_for, obstacles, waiting_for, waits
from opsdrill.model.lab import Lab

LAB = Lab.model_validate(
    {
        "driver": "ssh",
        "hosts": {
            "gate-a": "198.51.100.1",
            "gate-b": "198.51.100.2",
            "web-01": {"address": "10.0.0.1", "via": "gate-a"},
            "web-02": {"address": "10.0.0.1", "via": "gate-b"},
            "alias": {"address": "10.0.0.1", "via": "gate-a"},
            "other-port": {"address": "Example.ORG", "port": 2222},
        },
        "pools": {
            "near": {"hosts": ["web-01", "other-port"], "size": 1},
            "far": {"hosts": ["gate-b"], "size": 3},
        },
    }
)
WHEN = datetime(2026, 1, 31, 12, tzinfo=UTC)


def keys(*names: str, driver: str = "ssh", lab: Lab | None = LAB) -> list[str]:
    return list(claim_for("r1", 1, driver, names, lab).hosts)


def test_a_machine_is_its_address_and_port_behind_its_bastion() -> None:
    assert keys("other-port") == ["ssh example.org:2222"]
    assert keys("web-01") == ["ssh 10.0.0.1:22 via 198.51.100.1:22"]
    assert keys("web-01") != keys("web-02")


def test_two_names_of_one_machine_are_one_machine() -> None:
    assert keys("web-01") == keys("alias") == keys("alias", "web-01")


def test_without_an_address_the_name_counts() -> None:
    assert keys("b", "a", driver="other", lab=None) == ["other a", "other b"]


def test_this_very_machine_is_one_whatever_it_is_called() -> None:
    assert keys("a", "b", driver="local", lab=None) == [f"local {platform.node()}"]


def test_keys_are_sorted_and_pools_are_those_that_hold_one_of_the_hosts() -> None:
    claim = claim_for("r1", 2, "ssh", ["web-01", "other-port", "gate-a"], LAB)
    assert list(claim.hosts) == sorted(claim.hosts)
    assert (claim.run, claim.attempt) == ("r1", 2)
    (pool,) = claim.pools
    assert (pool.name, pool.size) == ("near", 1)
    assert pool.hosts == set(keys("web-01", "other-port"))


def lease(number: int, run: str, *hosts: str, held: bool = True) -> Lease:
    names = {f"ssh {host}:22": host for host in hosts}
    return Lease(number, run, 1, names, held, WHEN, WHEN, "process 1 on here")


def claim(*hosts: str, pools: tuple[PoolLimit, ...] = ()) -> Claim:
    return Claim("me", 1, {f"ssh {host}:22": host for host in hosts}, pools)


@pytest.mark.parametrize(
    ("others", "says"),
    [
        (
            [lease(1, "r1", "a")],
            "waiting for a, held by run r1 since 2026-01-31 12:00:00Z",
        ),
        (
            [lease(1, "r1", "a", "b"), lease(2, "r2", "c")],
            "waiting for a, b, held by run r1 since 2026-01-31 12:00:00Z (and 1 more)",
        ),
        ([lease(1, "r1", "a", held=False)], "waiting for a, which run r1 asked for before"),
        (
            [lease(1, "r1", "a", held=False), lease(2, "r2", "b")],
            "waiting for b, held by run r2 since 2026-01-31 12:00:00Z (and 1 more)",
        ),
    ],
)
def test_what_a_run_waits_for_in_words(others: list[Lease], says: str) -> None:
    assert waiting_for(obstacles(claim("a", "b", "c"), others)) == says


def test_nothing_is_in_the_way_of_other_hosts() -> None:
    assert obstacles(claim("a"), [lease(1, "r1", "b")]) == ()


def test_a_pool_with_room_is_not_in_the_way() -> None:
    pool = PoolLimit("p", 2, frozenset({"ssh a:22", "ssh b:22", "ssh c:22"}))
    mine = claim("a", pools=(pool,))
    assert obstacles(mine, [lease(1, "r1", "b"), lease(2, "r2", "elsewhere")]) == ()
    assert len(obstacles(mine, [lease(1, "r1", "b"), lease(2, "r2", "c")])) == 2


def test_the_book_tells_what_each_waiting_run_waits_for() -> None:
    found = waits(
        [
            lease(1, "r1", "a"),
            lease(2, "r2", "a", held=False),
            lease(3, "r3", "b", held=False),
        ]
    )
    assert found == {
        "r2": "waiting for a, held by run r1 since 2026-01-31 12:00:00Z",
        "r3": "waiting for a place in a pool of b",
    }
