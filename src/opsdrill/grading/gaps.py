"""Gaps: what the record says that it cannot know, or holds only in part."""

from __future__ import annotations

from dataclasses import dataclass

from opsdrill.errors import Fault
from opsdrill.grading.explain import clean
from opsdrill.model.job import Coverage, Seen
from opsdrill.model.rules import TASK_WHERES, Where


@dataclass(frozen=True, slots=True)
class Gap:
    """One thing that the record does not know, or not whole: a `where`, `tasks` or `times`."""

    name: str
    partial: bool
    why: str | None

    @property
    def fault(self) -> Fault:
        """Evidence that got lost is the infrastructure's; a kind of record that cannot know it
        was the operator's choice."""
        return "infrastructure" if self.partial else "operator"

    def __str__(self) -> str:
        held = "only in part" if self.partial else "not at all"
        why = f" ({clean(self.why)})" if self.why else ""
        return f"the record holds `{self.name}` {held}{why}"


def gap_in(coverage: Coverage, name: str) -> Gap | None:
    """The gap in a `where`, in `tasks` or in `times`; None where the record is whole."""
    seen = coverage.of(name)
    return None if seen.state == "whole" else Gap(name, seen.state == "partial", seen.why)


def gap_in_values(coverage: Coverage, where: Where) -> Gap | None:
    """The gap in the values of a target: its own, or a task that may be missing with them."""
    own = gap_in(coverage, where)
    if own is None and where in TASK_WHERES:
        return gap_in(coverage, "tasks")
    return own


def all_gaps(coverage: Coverage) -> list[str]:
    """A sentence for the default and for each own entry that is not whole."""
    own = {name: seen for name, seen in coverage if seen is not None and name != "default"}
    found = [_rest(coverage.default, own)] if coverage.default.state != "whole" else []
    return found + [str(each) for name in own if (each := gap_in(coverage, name))]


def _rest(default: Seen, own: dict[str, Seen]) -> str:
    """The sentence about all evidence without an entry of its own."""
    why = f" ({clean(default.why)})" if default.why else ""
    if default.state == "partial":
        beside = f"apart from {', '.join(sorted(own))} " if own else ""
        return f"{beside}the record holds all evidence only in part{why}"
    held = sorted(name for name, seen in own.items() if seen.state != "unavailable")
    kept = f"only {', '.join(held)}" if held else "no evidence"
    return f"the record holds {kept}{why}"
