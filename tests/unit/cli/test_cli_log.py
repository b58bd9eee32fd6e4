"""The log of a process that stays is safe to show and to keep."""

from __future__ import annotations

import logging

from opsdrill.app.access import Access
from opsdrill.cli.log import Plain
from opsdrill.store.memory import MemoryStore


def line(text: str, error: Exception | None = None) -> str:
    trace = (type(error), error, None) if error else None
    record = logging.LogRecord("opsdrill.x", logging.INFO, "x.py", 1, "%s", (text,), trace)
    return Plain("%(message)s").format(record)


def test_nothing_moves_a_cursor() -> None:
    """[A6.4] Not what a trace of an error quotes, either."""
    assert line("a\x1b[31mb\r") == r"a\x1b[31mb\r"
    assert "\x1b" not in line("a", ValueError("\x1b[2J"))


def test_a_real_token_is_masked_wherever_it_stands() -> None:
    """[A6.4]"""
    made = Access(MemoryStore().access()).create("a", "read", days=None, by=None)
    assert line(f"Bearer {made.secret}, again") == "Bearer [masked:token], again"
    assert made.secret not in line("a", ValueError(f"no {made.secret}"))
