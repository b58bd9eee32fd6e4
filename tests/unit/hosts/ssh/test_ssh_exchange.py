"""What comes back over a connection, in whatever pieces."""

from __future__ import annotations

from opsdrill.hosts.drivers.ssh.exchange import CommandExchange, Exchange
from opsdrill.hosts.drivers.ssh.resident import ResidentExchange


def test_closing_line_that_comes_in_two() -> None:
    """A command of a shell that stays is complete with the last byte of its closing words, which
    would else be taken for the next command's."""
    exchange = ResidentExchange("N0", 99)
    exchange.feed(b"N0 bash\n", error=True)
    exchange.feed(b"N0 3 free\n", error=True)
    exchange.feed(b"out\nN0", error=False)
    assert not exchange.complete.is_set()
    exchange.feed(b"\n", error=False)
    assert exchange.complete.is_set()
    assert exchange.free
    assert exchange.out.text == "out\n"
    assert exchange.end is not None
    assert (exchange.end.status, exchange.end.shell) == (3, "bash")


def test_status_without_all_output() -> None:
    """A status is an end only where all that the command wrote came."""
    for whole in (True, False):
        exchange = CommandExchange("N0", 99)
        exchange.feed(b"N0 bash\n", error=True)
        exchange.tell(3)
        assert exchange.over.is_set()
        exchange.finish(whole=whole)
        assert (exchange.end is not None) is whole


def test_no_shell_is_certain_only_in_good_order() -> None:
    """Without a first word nothing ran, unless the connection was cut."""
    for whole in (True, False):
        exchange = Exchange("N0", 99)
        exchange.feed(b"This account is not available\n", error=False)
        exchange.finish(whole=whole)
        assert (exchange.no_shell is not None) is whole


def test_abandoned_exchange_wakes_whoever_waits() -> None:
    """Nobody waits for ever for what was given up."""
    exchange = Exchange("N0", 99)
    exchange.abandon()
    assert exchange.begun.is_set()
    assert exchange.over.is_set()
    assert exchange.complete.is_set()
    assert exchange.end is None
    assert exchange.no_shell is None
