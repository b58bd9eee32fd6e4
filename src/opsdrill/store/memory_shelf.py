"""A shelf that ends with its process, for tests and trials."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from threading import RLock

from opsdrill.errors import NotThere
from opsdrill.model.run import StoredFile
from opsdrill.model.scenario import Scenario
from opsdrill.store.course import clipped_mark
from opsdrill.store.cursor import check_limit, decode_key, encode_key
from opsdrill.store.memory_files import MemoryFiles
from opsdrill.store.shelf import (
    KeptScenario,
    ScenarioPage,
    ScenarioRow,
    ScenarioVersion,
    check_expected,
    check_key,
    taken,
    words_of,
)


class MemoryShelf:
    """A `Shelf` in memory.

    Args:
        files: the store's files.
        lock: the store's.
        clock: the present moment, in UTC.
    """

    def __init__(self, files: MemoryFiles, lock: RLock, clock: Callable[[], datetime]) -> None:
        self._files = files
        self._lock = lock
        self._clock = clock
        self._kept: dict[str, list[KeptScenario]] = {}

    def create(
        self,
        scenario: Scenario,
        version: str,
        files: Sequence[StoredFile] = (),
        *,
        by: str | None = None,
    ) -> KeptScenario:
        with self._lock:
            if scenario.key in self._kept:
                raise taken(scenario.key)
            return self._put(scenario, version, files, by, [])

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
        check_key(key, scenario)
        with self._lock:
            before = self._of(key)
            check_expected(key, before[-1].number, expected)
            if before[-1].version == version:
                return before[-1]
            return self._put(scenario, version, files, by, before)

    def get(self, key: str, number: int | None = None) -> KeptScenario:
        with self._lock:
            kept = self._of(key)
            if number is None:
                return kept[-1]
            if not 1 <= number <= len(kept):
                raise NotThere("version", f"{key} {number}")
            return kept[number - 1]

    def page(
        self,
        *,
        search: str | None = None,
        tag: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> ScenarioPage:
        after = None if cursor is None else decode_key(cursor)
        check_limit(limit)
        with self._lock:
            found = [
                _row(kept[-1])
                for key, kept in sorted(self._kept.items())
                if (after is None or key > after) and _wanted(kept[-1].scenario, search, tag)
            ]
        more = len(found) > limit
        return ScenarioPage(
            tuple(found[:limit]), encode_key(found[limit - 1].key) if more else None
        )

    def versions(self, key: str) -> list[ScenarioVersion]:
        with self._lock:
            return [
                ScenarioVersion(kept.number, kept.version, kept.changed_at, kept.by, key)
                for kept in reversed(self._of(key))
            ]

    def delete(self, key: str, *, expected: int | None = None) -> None:
        with self._lock:
            kept = self._of(key)
            check_expected(key, kept[-1].number, expected)
            del self._kept[key]
            self._files.leave(("scenario", key))

    def all(self) -> Iterator[KeptScenario]:
        with self._lock:
            return iter([kept[-1] for _, kept in sorted(self._kept.items())])

    def _of(self, key: str) -> list[KeptScenario]:
        if key not in self._kept:
            raise NotThere("scenario", key)
        return self._kept[key]

    def _put(
        self,
        scenario: Scenario,
        version: str,
        files: Sequence[StoredFile],
        by: str | None,
        before: list[KeptScenario],
    ) -> KeptScenario:
        self._files.use(("scenario", scenario.key), f"scenario {scenario.key}", files)
        now = self._clock()
        kept = KeptScenario(
            key=scenario.key,
            number=len(before) + 1,
            version=version,
            scenario=scenario,
            files=tuple(files),
            created_at=before[0].created_at if before else now,
            changed_at=now,
            by=by,
        )
        self._kept[scenario.key] = [*before, kept]
        return kept


def _row(kept: KeptScenario) -> ScenarioRow:
    scenario = kept.scenario
    return ScenarioRow(
        key=kept.key,
        title=scenario.title,
        tags=scenario.tags,
        hosts=tuple(host.name for host in scenario.hosts),
        rules=len(scenario.validation),
        number=kept.number,
        version=kept.version,
        changed_at=kept.changed_at,
        by=kept.by,
    )


def _wanted(scenario: Scenario, search: str | None, tag: str | None) -> bool:
    tags = (clipped_mark(one) for one in scenario.tags)
    if tag is not None and clipped_mark(tag) not in tags:
        return False
    return search is None or search.casefold() in words_of(scenario)
