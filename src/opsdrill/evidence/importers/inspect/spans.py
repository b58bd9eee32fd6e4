"""Whose events are whose in an Inspect log: the agent's, another agent's, a tool's, a scorer's."""

from __future__ import annotations

from dataclasses import dataclass, replace

from opsdrill.evidence.transcripts.rows import text

MAIN = "main"
_SCORERS = ("scorer", "scorers")
_MOST = 500_000
"""Spans that are kept in mind at once."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an event belongs.

    Args:
        work: the id of the agent's work.
        name: what the agent is called, where it is not the main one.
        scoring: it is part of judging the agent.
        in_tool: it is part of what a tool does.
        below: an agent or a tool is above it, so that another agent there was called.
    """

    work: str = MAIN
    name: str | None = None
    scoring: bool = False
    in_tool: bool = False
    below: bool = False


class Spans:
    """The spans of one sample, each under its parent; old logs have steps, one in the other."""

    def __init__(self) -> None:
        self._places: dict[str, Place] = {}
        self._scorers = 0

    def place(self, id: str | None) -> Place:
        """Where an event in this span belongs."""
        place = self._places.get(id or "", Place())
        return replace(place, scoring=True) if self._scorers else place

    def begin(self, event: object) -> None:
        """A span began."""
        id, kind = text(event, "id"), text(event, "type")
        above = self.place(text(event, "parent_id"))
        if id is None or len(self._places) >= _MOST:
            return
        if kind in _SCORERS:
            self._places[id] = replace(above, scoring=True)
        elif kind == "tool":
            self._places[id] = replace(above, in_tool=True, below=True)
        elif kind != "agent":
            self._places[id] = above
        elif above.below:
            self._places[id] = Place(f"agent-{id}", text(event, "name"), above.scoring, below=True)
        else:
            self._places[id] = replace(above, below=True)

    def step(self, event: object) -> None:
        """A step began or ended."""
        if text(event, "type") in _SCORERS:
            change = 1 if text(event, "action") == "begin" else -1
            self._scorers = max(0, self._scorers + change)
