"""Scenarios that are kept, their versions, tags and files. `scenario` is a scenario's number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, delete, select, update

from opsdrill.errors import NotThere
from opsdrill.store.course import clipped_mark
from opsdrill.store.database import contains, insert_or_ignore
from opsdrill.store.tables import SCENARIO_FILES, SCENARIO_TAGS, SCENARIO_VERSIONS, SCENARIOS

_VERSION = (
    SCENARIOS.c.key, SCENARIOS.c.created_at.label("made_at"), SCENARIO_VERSIONS.c.number,
    SCENARIO_VERSIONS.c.version, SCENARIO_VERSIONS.c.created_at, SCENARIO_VERSIONS.c.by,
    SCENARIO_VERSIONS.c.form, SCENARIO_VERSIONS.c.body,
)  # fmt: skip


def insert_scenario(connection: Connection, values: dict[str, object]) -> int | None:
    """The new scenario's number; None when its key is there already."""
    statement = insert_or_ignore(connection, SCENARIOS, ["key"]).values(**values)
    number: int | None = connection.execute(statement.returning(SCENARIOS.c.number)).scalar()
    return number


def scenario_to_change(connection: Connection, key: str) -> Row[*tuple[Any, ...]]:
    """A scenario's row; until the transaction ends nobody else can change it. Raises NotThere."""
    statement = select(SCENARIOS).where(SCENARIOS.c.key == key).with_for_update()
    row = connection.execute(statement).first()
    if row is None:
        raise NotThere("scenario", key)
    return row


def set_scenario(connection: Connection, scenario: int, values: dict[str, object]) -> None:
    connection.execute(update(SCENARIOS).where(SCENARIOS.c.number == scenario).values(**values))


def put_version(connection: Connection, values: dict[str, object]) -> None:
    connection.execute(SCENARIO_VERSIONS.insert().values(**values))


def set_tags(connection: Connection, scenario: int, tags: Iterable[str]) -> None:
    """Give a scenario these tags and no others."""
    connection.execute(delete(SCENARIO_TAGS).where(SCENARIO_TAGS.c.scenario == scenario))
    rows = [
        {"scenario": scenario, "tag": tag} for tag in sorted({clipped_mark(tag) for tag in tags})
    ]
    if rows:
        connection.execute(SCENARIO_TAGS.insert(), rows)


def use_files(connection: Connection, scenario: int, digests: Iterable[str]) -> None:
    rows = [{"scenario": scenario, "digest": digest} for digest in sorted(set(digests))]
    if rows:
        connection.execute(insert_or_ignore(connection, SCENARIO_FILES), rows)


def scenario_files(connection: Connection, scenario: int) -> list[str]:
    used = select(SCENARIO_FILES.c.digest).where(SCENARIO_FILES.c.scenario == scenario)
    return list(connection.execute(used).scalars())


def version(connection: Connection, key: str, number: int | None) -> Row[*tuple[Any, ...]] | None:
    """A version with its content, the latest where no number is given."""
    wanted = SCENARIOS.c.latest if number is None else min(max(number, 0), 2**31 - 1)
    return connection.execute(
        select(*_VERSION)
        .join(SCENARIO_VERSIONS, SCENARIO_VERSIONS.c.scenario == SCENARIOS.c.number)
        .where(SCENARIOS.c.key == key, SCENARIO_VERSIONS.c.number == wanted)
    ).first()


def versions(connection: Connection, key: str) -> Sequence[Row[*tuple[Any, ...]]]:
    """All versions without their content, the latest first."""
    columns = [column for column in SCENARIO_VERSIONS.c if column.name not in ("form", "body")]
    return connection.execute(
        select(*columns)
        .join(SCENARIOS, SCENARIO_VERSIONS.c.scenario == SCENARIOS.c.number)
        .where(SCENARIOS.c.key == key)
        .order_by(SCENARIO_VERSIONS.c.number.desc())
    ).all()


def latest(
    connection: Connection, limit: int, after: str | None
) -> Sequence[Row[*tuple[Any, ...]]]:
    """The latest version of each scenario with its content, by key."""
    statement = select(*_VERSION).join(
        SCENARIO_VERSIONS,
        (SCENARIO_VERSIONS.c.scenario == SCENARIOS.c.number)
        & (SCENARIO_VERSIONS.c.number == SCENARIOS.c.latest),
    )
    if after is not None:
        statement = statement.where(SCENARIOS.c.key > after)
    return connection.execute(statement.order_by(SCENARIOS.c.key).limit(limit)).all()


def scenarios(
    connection: Connection, words: str | None, tag: str | None, limit: int, after: str | None
) -> Sequence[Row[*tuple[Any, ...]]]:
    """Rows of a listing by key. `words` is in small letters already."""
    wanted: list[ColumnElement[bool]] = []
    if words:
        wanted.append(contains(connection, SCENARIOS.c.words, words))
    if tag is not None:
        tagged = select(SCENARIO_TAGS.c.scenario).where(SCENARIO_TAGS.c.tag == clipped_mark(tag))
        wanted.append(SCENARIOS.c.number.in_(tagged))
    if after is not None:
        wanted.append(SCENARIOS.c.key > after)
    return connection.execute(
        select(SCENARIOS).where(*wanted).order_by(SCENARIOS.c.key).limit(limit)
    ).all()


def delete_scenario(connection: Connection, scenario: int) -> None:
    for table in (SCENARIO_VERSIONS, SCENARIO_TAGS, SCENARIO_FILES):
        connection.execute(delete(table).where(table.c.scenario == scenario))
    connection.execute(delete(SCENARIOS).where(SCENARIOS.c.number == scenario))
