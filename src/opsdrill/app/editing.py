"""A scenario as it is shown to an editor, and what the editor must have seen to change it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from opsdrill.errors import Conflict, Problem
from opsdrill.scenarios.catalogue import Origin
from opsdrill.scenarios.load import LoadedScenario


class NotEditable(Conflict):
    """It cannot be done to what is there, whichever version of it the caller saw."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One scenario.

    Args:
        loaded: the scenario with its files.
        origin: where it is.
        number: counts the edits of one in the store, from 1; 0 for one in a file.
        changed_at: when this version was made, where that is known.
        by: who made it, likewise.
        created_at: when the scenario came into the store.
        warnings: after it was changed: what lint finds in it, but for what depends on judgement.
    """

    loaded: LoadedScenario
    origin: Origin
    number: int
    changed_at: datetime | None = None
    by: str | None = None
    created_at: datetime | None = None
    warnings: tuple[Problem, ...] = ()

    @property
    def key(self) -> str:
        return self.loaded.scenario.key

    @property
    def etag(self) -> str:
        """What an editor must have seen: the edit's number and the version."""
        return f'"{self.number}-{self.loaded.version}"'


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a scenario; a file knows neither when nor by whom it was made."""

    number: int
    version: str
    created_at: datetime | None = None
    by: str | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """What an editor saw: tags as `Shown.etag` has them; None: any version will do."""

    tags: tuple[str, ...] | None = None

    def check(self, shown: Shown) -> int | None:
        """The number that the store must still have. Raises Conflict where it is another."""
        if self.tags is None:
            return None
        if shown.etag not in self.tags:
            raise Conflict(
                f"scenario {shown.key!r} was changed meanwhile: it is at {shown.etag}",
                hint="read it again and repeat the change",
            )
        return shown.number
