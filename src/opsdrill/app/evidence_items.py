"""The pieces of a job record one by one: paged, searched, with long texts cut."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from pydantic import BaseModel

from opsdrill.app.lines import KINDS, Kind, Line, Lines
from opsdrill.errors import NotThere
from opsdrill.model.job import Task
from opsdrill.store.cursor import decode_number, encode_number

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


def items(record: Lines, wanted: Wanted, *, limit: int = 50, cursor: str | None = None) -> Items:
    """One page of a record's pieces.

    Raises:
        UsageError: the cursor is none.
    """
    after = -1 if cursor is None else decode_number(cursor)
    found: list[Item] = []
    more = False
    for line in record.all[after + 1 :]:
        if not _may_fit(line, wanted):
            continue
        item = _item(line)
        if wanted.text is not None and not _holds(item.content, wanted.text.casefold()):
            continue
        if len(found) == limit:
            more = True
            break
        found.append(shortened(item))
    coverage = record.record.coverage.model_dump(mode="json", exclude_none=True)
    next_page = encode_number(found[-1].number) if more else None
    return Items(tuple(found), next_page, coverage, record.sealed)


def item(record: Lines, number: int) -> Item:
    """One piece, whole.

    Raises:
        NotThere: there is no such piece.
    """
    if number >= len(record):
        raise NotThere("piece of evidence", str(number))
    return _item(record.all[number])


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


def _item(line: Line) -> Item:
    content = _plain(line.piece)
    if line.kind == "plan":
        content = {"plan": content["plan"]}
    elif line.kind == "resolution":
        content["plan"] = None
    task = line.task
    return Item(
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


def _may_fit(line: Line, wanted: Wanted) -> bool:
    """What can be told without its content."""
    task = line.task
    return (
        wanted.kind in (None, line.kind)
        and (wanted.task is None or (task is not None and task.id == wanted.task))
        and (wanted.host is None or (task is not None and task.host == wanted.host))
    )


def _holds(value: object, text: str) -> bool:
    if isinstance(value, str):
        return text in value.casefold()
    if isinstance(value, dict):
        return any(_holds(inner, text) for inner in value.values())
    if isinstance(value, list | tuple):
        return any(_holds(inner, text) for inner in value)
    return False
