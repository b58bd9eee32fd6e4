"""Ids of tool calls, made unique: some models number their calls anew in every message."""

from __future__ import annotations

from collections import Counter


class CallIds:
    """The ids of one agent's calls: what the transcript calls them, and what they are called."""

    def __init__(self) -> None:
        self._times: Counter[str] = Counter()
        self._current: dict[str, str] = {}

    def new(self, name: str | None) -> str:
        """The id of a call that is made now, whatever its name was given to before."""
        name = name or "call"
        self._times[name] += 1
        id = name if self._times[name] == 1 else f"{name}#{self._times[name]}"
        while id in self._times and id != name:  # some name looks like one of ours
            self._times[name] += 1
            id = f"{name}#{self._times[name]}"
        if id != name:
            self._times[id] += 1
        self._current[name] = id
        return id

    def of(self, name: str | None) -> str | None:
        """The id of the last call with this name; None where there is none."""
        return self._current.get(name or "")
