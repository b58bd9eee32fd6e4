"""The shelf: scenarios kept in the store, versioned by content.

Every edit that changes something makes the next number. A deleted scenario is gone with all its
numbers; runs keep the exact version that they ran.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from opsdrill.errors import Conflict
from opsdrill.model.run import StoredFile
from opsdrill.model.scenario import Scenario


@dataclass(frozen=True, slots=True)
class KeptScenario:
    """One version of a scenario."""

    key: str
    number: int
    """Counts the edits, from 1."""
    version: str
    """The digest of the content: the scenario with its support files."""
    scenario: Scenario
    files: tuple[StoredFile, ...]
    created_at: datetime
    """When the scenario came to the shelf."""
    changed_at: datetime
    """When this version was made."""
    by: str | None
    """Who made this version."""


@dataclass(frozen=True, slots=True)
class ScenarioRow:
    """A scenario as a listing shows it, without reading its content."""

    key: str
    title: str
    tags: tuple[str, ...]
    hosts: tuple[str, ...]
    rules: int
    number: int
    version: str
    changed_at: datetime
    by: str | None


@dataclass(frozen=True, slots=True)
class ScenarioVersion:
    """A version without its content; the fields are those of `KeptScenario`."""

    number: int
    version: str
    created_at: datetime
    """When this version was made."""
    by: str | None
    key: str


@dataclass(frozen=True, slots=True)
class ScenarioPage:
    """Some scenarios by key, and the cursor of the next page (None at the end)."""

    rows: tuple[ScenarioRow, ...] = ()
    cursor: str | None = None


class Shelf(Protocol):
    """Scenarios by key. Every call raises StoreError where the store cannot be used."""

    def create(
        self,
        scenario: Scenario,
        version: str,
        files: Sequence[StoredFile] = (),
        *,
        by: str | None = None,
    ) -> KeptScenario:
        """Keep a new scenario under its key.

        Args:
            scenario: the scenario.
            version: the digest of scenario and support files.
            files: its support files; their content was put into the store before.
            by: who does it.

        Raises:
            Conflict: the key is there already.
            StoreError: a support file was never put.
        """

    def replace(
        self,
        key: str,
        scenario: Scenario,
        version: str,
        files: Sequence[StoredFile] = (),
        *,
        by: str | None = None,
        expected: int | None = None,
    ) -> KeptScenario:
        """Keep a scenario's next version; the same content as before makes none.

        Args:
            key: the scenario's key.
            scenario: as in `create`; its key must be the same.
            version: as in `create`.
            files: as in `create`.
            by: as in `create`.
            expected: the number that the editor saw; None: whatever it is.

        Raises:
            NotThere: there is no such scenario.
            Conflict: its number is not `expected`, or `scenario` has another key.
            StoreError: as `create`.
        """

    def get(self, key: str, number: int | None = None) -> KeptScenario:
        """The latest version, or that with the number. Raises NotThere."""

    def page(
        self,
        *,
        search: str | None = None,
        tag: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> ScenarioPage:
        """One page of a listing, by key.

        Args:
            search: a text that must be in key, title or a tag, in capitals or not.
            tag: a tag that a scenario must have.
            limit: 1 to 1000.
            cursor: where the page before ended.

        Raises:
            UsageError: the cursor is no page's, or `limit` is out of its bounds.
        """

    def versions(self, key: str) -> list[ScenarioVersion]:
        """All versions, the latest first. Raises NotThere."""

    def delete(self, key: str, *, expected: int | None = None) -> None:
        """Remove a scenario with all its versions.

        Raises:
            NotThere: there is no such scenario.
            Conflict: its number is not `expected`.
        """

    def all(self) -> Iterator[KeptScenario]:
        """The latest version of every scenario, by key."""


def check_expected(key: str, number: int, expected: int | None) -> None:
    """Raises Conflict where an editor saw another version than the latest."""
    if expected is not None and expected != number:
        raise Conflict(
            f"scenario {key!r} was changed meanwhile: it is at number {number}, not {expected}",
            hint="read it again and repeat the change",
        )


def check_key(key: str, scenario: Scenario) -> None:
    """Raises Conflict where a scenario would be kept under a key that is not its own."""
    if scenario.key != key:
        raise Conflict(
            f"scenario {key!r} cannot become {scenario.key!r}: a key is for good",
            hint="create it under the new key, then delete the old one",
        )


def taken(key: str) -> Conflict:
    """What is said where a key is there already."""
    return Conflict(f"scenario {key!r} is there already", hint="replace it, or choose another key")


def words_of(scenario: Scenario) -> str:
    """What a search looks through."""
    return "\n".join((scenario.key, scenario.title, *scenario.tags)).casefold()
