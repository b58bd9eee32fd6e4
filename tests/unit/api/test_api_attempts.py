"""Failures are counted by address, and nothing grows without bound."""

from __future__ import annotations

import pytest

from opsdrill.api.attempts import ADDRESSES, FAILURES, SECONDS, Attempts, counted_address


class Seconds:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_failures_age(monkeypatch: pytest.MonkeyPatch) -> None:
    """[A4.1] Each counts for a minute; the oldest says how long to wait."""
    clock = Seconds()
    attempts = Attempts(clock)
    for _ in range(FAILURES):
        assert attempts.wait("a") == 0
        attempts.failed("a")
        clock.now += 1
    assert attempts.wait("a") == SECONDS - FAILURES
    assert attempts.wait("b") == 0
    clock.now += SECONDS - FAILURES
    assert attempts.wait("a") == 0
    attempts.failed("a")
    assert attempts.wait("a") == 1


def test_memory_is_bounded() -> None:
    """[A4.1]"""
    attempts = Attempts(Seconds())
    for number in range(ADDRESSES + 500):
        attempts.failed(str(number))
        attempts.right(str(number), "hash")
    assert len(attempts._failures) == len(attempts._right) == ADDRESSES
    assert attempts.was_right(str(ADDRESSES), "hash")
    assert not attempts.was_right("0", "hash")


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64"),
        ("testclient", "testclient"),
        ("x" * 5000, "x" * 100),
        (None, ""),
    ],
)
def test_of_ipv6_a_whole_site_is_one(host: str | None, counted: str) -> None:
    """[A4.1] Each of its machines has more addresses than anybody could count."""
    assert counted_address(host) == counted
