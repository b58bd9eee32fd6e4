"""Long output of tool calls: its middle is left out, so that a job record stays of a bounded size.

No rule reads output (cut output changes no coverage); it is there for who reads the record.
"""

from __future__ import annotations

from opsdrill.model.event import JobEvent, ToolReturned

JOB_KEPT = 16 * 1024 * 1024
"""Characters of output that are kept whole of one job; of each call after them `REST_KEPT`."""
REST_KEPT = 2048


def cut(text: str, kept: int) -> str:
    """The text, or its first and last characters, `kept` together, and how many were left out."""
    if len(text) <= kept:
        return text
    half = kept // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"


class OutputBudget:
    """How much output of one job is still kept whole."""

    def __init__(self, kept: int = JOB_KEPT) -> None:
        self._left = kept

    def spend(self, event: JobEvent) -> JobEvent:
        """The event as it is kept; only the output of a call that returned may be cut."""
        if not isinstance(event, ToolReturned) or event.output is None:
            return event
        kept = self.fit(event.output)
        return event if kept is event.output else event.model_copy(update={"output": kept})

    def fit(self, output: str) -> str:
        """The output as it is kept."""
        if len(output) > max(self._left, REST_KEPT):
            output = cut(output, REST_KEPT)
        self._left -= len(output)
        return output
