"""The words of reasons: plain sentences, safe to show whatever the record holds."""

from __future__ import annotations

from collections.abc import Sequence

QUOTED = 100
"""Code points of a value that a reason shows."""
SENTENCE = 400
"""Code points of somebody else's sentence that a reason shows."""


def clean(text: str, limit: int = SENTENCE) -> str:
    """Somebody's text on one line, cut at `limit`; what a terminal would obey is escaped."""
    shown = _printable(text.strip()[: limit + 1])
    return shown if len(shown) <= limit else f"{shown[: limit - 3]}..."


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def quoted(text: str, span: tuple[int, int] | None = None) -> str:
    """A value in quotes, cut to the part around `span` when it is long."""
    start = 0
    if span is not None and span[1] > QUOTED:
        start = max(0, span[0] - QUOTED // 4)
    part = text[start : start + QUOTED]
    before = "..." if start else ""
    after = "..." if start + QUOTED < len(text) else ""
    return f'"{before}{_printable(part)}{after}"'


def ending(text: str) -> str:
    """The end of a value in quotes."""
    before = "..." if len(text) > QUOTED else ""
    return f'"{before}{_printable(text[-QUOTED:])}"'


def counted(number: int, noun: str) -> str:
    """`1 rule`, `2 rules`, `2 matches`."""
    plural = f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def listed(items: Sequence[str], limit: int = 5) -> str:
    """The first items, and how many more there are."""
    more = f" and {len(items) - limit} more" if len(items) > limit else ""
    return ", ".join(items[:limit]) + more
