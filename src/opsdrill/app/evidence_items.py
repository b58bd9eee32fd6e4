"""The pieces of a job record one by one: paged, searched, with long texts cut."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from pydantic import BaseModel

from opsdrill.app.history import evidence_in, there
from opsdrill.app.lines import KINDS, Kind, in_order
from opsdrill.errors import NotThere, UsageError
from opsdrill.model.job import JobRecord, Task
from opsdrill.store.store import Store

TEXT_SHOWN = 4000
"""Characters of one text in a listing."""

__all__ = ["KINDS", "Item", "Items", "Kind", "Wanted", "item", "items", "shortened"]

Content = dict[str, object]


@dataclass(frozen=True, slots=True)
class Item:
    """One piece.

    Args:
        number: its place in the record, from 0.
        kind: what it is.
        content: as the record has it, as plain data.
        task: its task.
        host: the task's host.
        turn: the task's turn.
        at: when it began, or was said.
        cut: texts that are cut, with the characters of the whole.
    """

    number: int
    kind: Kind
    content: Content
    task: str | None = None
    host: str | None = None
    turn: int | None = None
    at: datetime | None = None
    cut: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a listing is narrowed to; None leaves a thing open."""

    kind: Kind | None = None
    task: str | None = None
    host: str | None = None
    text: str | None = None
    """In capitals or not, anywhere in the piece."""


@dataclass(frozen=True, slots=True)
class Items:
    """Some pieces, and the cursor of the next page (None at the end)."""

    items: tuple[Item, ...]
    cursor: str | None
    coverage: Content
    sealed: bool


def items(
    store: Store, run: str, wanted: Wanted, *, limit: int = 50, cursor: str | None = None
) -> Items:
    """One page of a run's evidence; while it is not sealed, as far as it was recorded.

    Raises:
        NotThere: there is no such run.
        UsageError: the cursor is none.
    """
    after = _number(cursor)
    with there(run):
        sealed = store.record(run)
        record = sealed or evidence_in(store, run)
    found: list[Item] = []
    more = False
    for item in _pieces(record):
        if item.number <= after or not _fits(item, wanted):
            continue
        if len(found) == limit:
            more = True
            break
        found.append(shortened(item))
    coverage = record.coverage.model_dump(mode="json", exclude_none=True)
    next_page = _cursor(found[-1].number) if more else None
    return Items(tuple(found), next_page, coverage, sealed is not None)


def item(store: Store, run: str, number: int) -> Item:
    """One piece, whole.

    Raises:
        NotThere: there is no such run, or no such piece.
    """
    with there(run):
        record = evidence_in(store, run)
    for found in _pieces(record):
        if found.number == number:
            return found
    raise NotThere("piece of evidence", str(number))


def shortened(item: Item) -> Item:
    """The piece with every long text cut."""
    cut: dict[str, int] = {}
    content = {key: _short(value, key, cut) for key, value in item.content.items()}
    return replace(item, content=content, cut=cut) if cut else item


def _short(value: object, path: str, cut: dict[str, int]) -> object:
    if isinstance(value, str) and len(value) > TEXT_SHOWN:
        cut[path] = len(value)
        return value[:TEXT_SHOWN]
    if isinstance(value, dict):
        return {key: _short(inner, f"{path}.{key}", cut) for key, inner in value.items()}
    if isinstance(value, list):
        return [_short(inner, f"{path}[{at}]", cut) for at, inner in enumerate(value)]
    return value


def _pieces(record: JobRecord) -> Iterator[Item]:
    """Everything in a record, in the order in which it is read."""
    for line in in_order(record):
        content = _plain(line.piece)
        if line.kind == "plan":
            content = {"plan": content["plan"]}
        elif line.kind == "resolution":
            content["plan"] = None
        task = line.task
        yield Item(
            line.number,
            line.kind,
            content,
            task.id if task else None,
            task.host if task else None,
            task.turn if task else None,
            line.at,
        )


def _plain(model: BaseModel) -> Content:
    inner = {"tool_calls", "messages"} if isinstance(model, Task) else None
    return model.model_dump(by_alias=True, exclude=inner)


def _fits(item: Item, wanted: Wanted) -> bool:
    return (
        wanted.kind in (None, item.kind)
        and wanted.task in (None, item.task)
        and wanted.host in (None, item.host)
        and (wanted.text is None or _holds(item.content, wanted.text.casefold()))
    )


def _holds(value: object, text: str) -> bool:
    if isinstance(value, str):
        return text in value.casefold()
    if isinstance(value, dict):
        return any(_holds(inner, text) for inner in value.values())
    if isinstance(value, list | tuple):
        return any(_holds(inner, text) for inner in value)
    return False


def _cursor(number: int) -> str:
    return base64.urlsafe_b64encode(b"%d" % number).decode().rstrip("=")


def _number(cursor: str | None) -> int:
    if cursor is None:
        return -1
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        if text.isdigit() and len(text) < 12:
            return int(text)
    except (ValueError, binascii.Error):
        pass
    raise UsageError("the cursor is none that a page gave", hint="start again without a cursor")
