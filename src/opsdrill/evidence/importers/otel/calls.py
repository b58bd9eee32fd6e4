"""Calls of tools in a trace: which answer asked for which span, and what errors mean."""

from __future__ import annotations

import re

from opsdrill.evidence.importers.otel.messages import Asked
from opsdrill.evidence.importers.otel.steps import Step
from opsdrill.evidence.importers.otel.tree import Answer
from opsdrill.model.job import JobStatus, Outcome, Stop

_TIMEOUT = re.compile(r"time.?out|deadline", re.IGNORECASE)
_REFUSED = re.compile(r"reject|denied|not.?approved|approval", re.IGNORECASE)
_CANCELLED = re.compile(r"cancel|interrupt|abort", re.IGNORECASE)
_OUT_OF_TURNS = re.compile(
    r"max.{0,12}(?:turn|step|iteration|round)|recursion|budget", re.IGNORECASE
)


class Wanted:
    """The calls that models asked for, until a tool's span is found that is one of them."""

    def __init__(self, answers: list[Answer]) -> None:
        self._left = [(answer, call) for answer in answers for call in answer.calls]
        self._by_id: dict[str, Asked] = {}
        self._by_name: dict[str, list[Asked]] = {}
        self._spanned: set[int] = set()
        for _, call in self._left:
            if call.id is not None:
                self._by_id.setdefault(call.id, call)
            self._by_name.setdefault(call.name, []).append(call)

    def given_to(self, step: Step) -> None:
        """Find the call that a tool's span is of; each lends the other what it lacks."""
        call = self._by_id.get(step.call) if step.call else None
        if call is None and not step.call:
            call = self._like(step)
        if call is None:
            return
        self._spanned.add(id(call))
        step.call = step.call or call.id
        if step.arguments is None:
            step.arguments = call.arguments

    def _like(self, step: Step) -> Asked | None:
        for call in self._by_name.get(step.name or "", ()):
            same = step.arguments is None or step.arguments == call.arguments
            if same and id(call) not in self._spanned:
                return call
        return None

    def left_of(self, answer: Answer) -> list[Asked]:
        """The calls of an answer that have no span."""
        return [call for call in answer.calls if id(call) not in self._spanned]


def outcome_of(step: Step) -> Outcome:
    """What became of a call, by its span."""
    if step.error is None:
        return "failed" if step.failed else "ran"
    if _TIMEOUT.search(step.error):
        return "timed_out"
    return "refused" if _REFUSED.search(step.error) else "failed"


def failed(error: str) -> tuple[JobStatus, str, Stop]:
    """How a job ended whose agent or model ended with an error."""
    if _CANCELLED.search(error):
        return "cancelled", error, Stop(reason=error, fault="operator")
    if _OUT_OF_TURNS.search(error) or _TIMEOUT.search(error):
        return "timed_out", error, Stop(reason=error, fault="agent")
    return "failed", error, Stop(reason=error, fault="infrastructure")
