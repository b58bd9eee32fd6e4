"""The pieces of a job record one by one: paged, searched, with long texts cut."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, get_args

from pydantic import BaseModel

from opsdrill.app.history import evidence_in, there
from opsdrill.errors import NotThere, UsageError
from opsdrill.model.job import JobRecord, Task
from opsdrill.store.store import Store

Kind = Literal["plan", "task", "call", "message", "ticket", "resolution"]
KINDS: tuple[Kind, ...] = get_args(Kind)
TEXT_SHOWN = 4000
"""Characters of one text in a listing."""

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
    for number, piece in enumerate(_unnumbered(record)):
        yield replace(piece, number=number)


def _unnumbered(record: JobRecord) -> Iterator[Item]:
    for message in record.ticket.messages:
        yield Item(0, "ticket", _plain(message), at=message.at)
    job = record.job
    if job is not None and job.plan is not None:
        yield Item(0, "plan", {"plan": job.plan}, at=job.created_at)
    for task in record.tasks:
        yield from _of_task(task)
    if job is not None:
        yield Item(0, "resolution", {**_plain(job), "plan": None}, at=job.ended_at)


def _of_task(task: Task) -> Iterator[Item]:
    about = task.model_copy(update={"tool_calls": (), "messages": ()})
    content = {k: v for k, v in _plain(about).items() if k not in ("tool_calls", "messages")}
    yield Item(0, "task", content, task.id, task.host, task.turn, task.started_at)
    calls: Sequence[tuple[datetime | None, Kind, BaseModel]] = [
        (call.started_at, "call", call) for call in task.tool_calls
    ]
    said: Sequence[tuple[datetime | None, Kind, BaseModel]] = [
        (message.at, "message", message) for message in task.messages
    ]
    both = [*calls, *said]
    if all(at is not None for at, _, _ in both):
        both.sort(key=lambda each: each[0].timestamp() if each[0] else 0.0)
    for at, kind, piece in both:
        yield Item(0, kind, _plain(piece), task.id, task.host, task.turn, at)


def _plain(model: BaseModel) -> Content:
    return model.model_dump(by_alias=True)


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
