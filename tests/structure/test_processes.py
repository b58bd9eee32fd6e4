"""Processes are started in ways in which only one party takes note of their end."""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "opsdrill"
TWICE = re.compile(r"\b(create_subprocess_(exec|shell)|subprocess_(exec|shell)|ChildWatcher)\b")
ANY = re.compile(r"\bwait(pid|id)\(-1|\bP_ALL\b|\bos\.wait[34]?\(")


def test_nobody_starts_processes_by_asyncio() -> None:
    """asyncio's own processes report a status that nobody ended with; see hosts/child.py."""
    found = [path for path in SOURCE.rglob("*.py") if TWICE.search(path.read_text())]
    assert found == []


def test_nobody_takes_note_of_the_ends_of_others() -> None:
    """Waiting for any child at all would take away the status that somebody else waits for."""
    found = [path for path in SOURCE.rglob("*.py") if ANY.search(path.read_text())]
    assert found == []
