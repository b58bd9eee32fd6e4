"""Long output of tool calls: its middle is left out, so that a job record stays of a bounded size.

No rule reads output (cut output changes no coverage); it is there for who reads the record.
"""

from __future__ import annotations

import re

from opsdrill.model.event import JobEvent, ToolReturned

JOB_KEPT = 16 * 1024 * 1024
"""Characters of output that are kept whole of one job; of each call after them `REST_KEPT`."""
REST_KEPT = 2048
CALL_KEPT = 256 * 1024
"""Characters of one call's output that a recorder keeps at most."""

LEFT_OUT = re.compile(r"\n\[[0-9]+ (?:characters|bytes) left out\](?=\n|\Z)")
"""What says that something was left out: where a text stands in two parts, or ends too soon."""


def cut(text: str, kept: int) -> str:
    """The text, or its first and last characters, `kept` together, and how many were left out."""
    if len(text) <= kept:
        return text
    half = kept // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"


def as_given(text: str, full_size: int | None) -> str:
    """What a host gave of some output, and how much it dropped.

    Args:
        full_size: bytes of the whole, where not all of it was given.
    """
    if full_size is None:
        return text
    return f"{text}\n[{max(0, full_size - len(text.encode(errors='replace')))} bytes left out]"


class OutputBudget:
    """How much output of one job is still kept whole.

    Args:
        kept: characters of all output together.
        each: characters of one call's output at most.
    """

    def __init__(self, kept: int = JOB_KEPT, *, each: int | None = None) -> None:
        self._left = kept
        self._each = each

    def spend(self, event: JobEvent) -> JobEvent:
        """The event as it is kept; only the output of a call that returned may be cut."""
        if not isinstance(event, ToolReturned) or event.output is None:
            return event
        kept = self.fit(event.output)
        return event if kept is event.output else event.model_copy(update={"output": kept})

    def fit(self, output: str) -> str:
        """The output as it is kept."""
        size = len(output) if self._each is None else min(len(output), self._each)
        output = cut(output, size if size <= max(self._left, REST_KEPT) else REST_KEPT)
        self._left -= len(output)
        return output
