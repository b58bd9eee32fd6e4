"""The shelf of scenarios in the database."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Connection, Row

from opsdrill.errors import NotThere, StoreDamaged
from opsdrill.model.fields import Items, Recorded
from opsdrill.model.run import StoredFile
from opsdrill.model.scenario import Scenario
from opsdrill.store import course
from opsdrill.store.cursor import check_limit, decode_key, encode_key, microseconds, moment
from opsdrill.store.database import Database
from opsdrill.store.documents import Body, dump, load, pack, unpack
from opsdrill.store.queries import files as file_queries
from opsdrill.store.queries import shelf as queries
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
from opsdrill.store.sql_files import SqlFiles

AT_ONCE = 100


class _Content(Recorded):
    """What a version's row holds."""

    scenario: Scenario
    files: Items[StoredFile] = ()


CONTENT: TypeAdapter[_Content] = TypeAdapter(_Content)


class SqlShelf:
    """A `Shelf` in the store's database.

    Args:
        database: the store's.
        files: the store's files.
        clock: the present moment, in UTC.
    """

    def __init__(self, database: Database, files: SqlFiles, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._files = files
        self._clock = clock

    def create(
        self,
        scenario: Scenario,
        version: str,
        files: Sequence[StoredFile] = (),
        *,
        by: str | None = None,
    ) -> KeptScenario:
        now = self._clock()
        kept = KeptScenario(scenario.key, 1, version, scenario, tuple(files), now, now, by)
        values = {"key": kept.key, "created_at": microseconds(now)} | _columns(kept)
        with self._database.write() as connection:
            number = queries.insert_scenario(connection, values)
            if number is None:
                raise taken(scenario.key)
            _put(connection, number, kept)
        return kept

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
        now = self._clock()
        with self._database.write() as connection:
            row = queries.scenario_to_change(connection, key)
            check_expected(key, row.latest, expected)
            if row.version == version:
                return _kept(connection, key, None)
            made, latest = moment(row.created_at), row.latest + 1
            kept = KeptScenario(key, latest, version, scenario, tuple(files), made, now, by)
            queries.set_scenario(connection, row.number, _columns(kept))
            _put(connection, row.number, kept)
        return kept

    def get(self, key: str, number: int | None = None) -> KeptScenario:
        with self._database.read() as connection:
            return _kept(connection, key, number)

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
        words = None if search is None else search.casefold()
        with self._database.read() as connection:
            found = queries.scenarios(connection, words, tag, limit + 1, after)
        more = len(found) > limit
        return ScenarioPage(
            tuple(_row(row) for row in found[:limit]),
            encode_key(found[limit - 1].key) if more else None,
        )

    def versions(self, key: str) -> list[ScenarioVersion]:
        with self._database.read() as connection:
            found = queries.versions(connection, key)
        if not found:
            raise NotThere("scenario", key)
        return [
            ScenarioVersion(row.number, row.version, moment(row.created_at), row.by, key)
            for row in found
        ]

    def delete(self, key: str, *, expected: int | None = None) -> None:
        with self._database.write() as connection:
            row = queries.scenario_to_change(connection, key)
            check_expected(key, row.latest, expected)
            used = queries.scenario_files(connection, row.number)
            queries.delete_scenario(connection, row.number)
            unused = self._files.forget_unused(connection, used)
        self._files.remove(unused)

    def all(self) -> Iterator[KeptScenario]:
        # Page by page, so that neither memory nor a transaction grows with the shelf.
        after: str | None = None
        while True:
            with self._database.read() as connection:
                rows = queries.latest(connection, AT_ONCE, after)
            for row in rows:
                yield _scenario(row)
            if len(rows) < AT_ONCE:
                return
            after = rows[-1].key


def _body(scenario: Scenario, files: Sequence[StoredFile]) -> Body:
    content = dump(CONTENT, _Content(scenario=scenario, files=tuple(files)))
    # However long, in the row: no listing reads it.
    return pack(content) or Body("zlib", zlib.compress(content, 1))


def _columns(kept: KeptScenario) -> dict[str, object]:
    """What a listing shows of the latest version."""
    scenario = kept.scenario
    return {
        "title": scenario.title,
        "tags": json.dumps(scenario.tags),
        "hosts": json.dumps([host.name for host in scenario.hosts]),
        "rules": len(scenario.validation),
        "words": words_of(scenario),
        "latest": kept.number,
        "version": kept.version,
        "changed_at": microseconds(kept.changed_at),
        "by": kept.by,
    }


def _put(connection: Connection, scenario: int, kept: KeptScenario) -> None:
    """Keep a version of the scenario with this number."""
    digests = {file.digest for file in kept.files}
    known = file_queries.known_files(connection, digests, keep=True)
    course.check_files(f"scenario {kept.key}", kept.files, known)
    queries.use_files(connection, scenario, digests)
    file_queries.planned_files(connection, digests)
    body = _body(kept.scenario, kept.files)
    values = {
        "scenario": scenario,
        "number": kept.number,
        "version": kept.version,
        "created_at": microseconds(kept.changed_at),
        "by": kept.by,
        "form": body.form,
        "body": body.data,
    }
    queries.put_version(connection, values)
    queries.set_tags(connection, scenario, kept.scenario.tags)


def _kept(connection: Connection, key: str, number: int | None) -> KeptScenario:
    row = queries.version(connection, key, number)
    if row is not None:
        return _scenario(row)
    if number is not None and queries.version(connection, key, None) is not None:
        raise NotThere("version", f"{key} {number}")
    raise NotThere("scenario", key)


def _scenario(row: Row[*tuple[Any, ...]]) -> KeptScenario:
    what = f"version {row.number} of scenario {row.key}"
    content = load(CONTENT, unpack(Body(row.form, bytes(row.body)), what), what)
    return KeptScenario(
        key=row.key,
        number=row.number,
        version=row.version,
        scenario=content.scenario,
        files=content.files,
        created_at=moment(row.made_at),
        changed_at=moment(row.created_at),
        by=row.by,
    )


def _row(row: Row[*tuple[Any, ...]]) -> ScenarioRow:
    return ScenarioRow(
        key=row.key,
        title=row.title,
        tags=_texts(row.tags, row.key),
        hosts=_texts(row.hosts, row.key),
        rules=row.rules,
        number=row.latest,
        version=row.version,
        changed_at=moment(row.changed_at),
        by=row.by,
    )


def _texts(text: str, key: str) -> tuple[str, ...]:
    try:
        return tuple(json.loads(text))
    except ValueError:
        raise StoreDamaged(f"the row of scenario {key} cannot be read back") from None
