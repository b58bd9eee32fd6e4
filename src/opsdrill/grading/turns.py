"""Turns: the tasks that a job started together, by their numbers or from their times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime

from opsdrill.model.sealed import AnyTask

Turn = tuple[AnyTask, ...]
"""The tasks of one turn: in the record's order when numbered, by start when derived."""

_NEVER = datetime.max.replace(tzinfo=UTC)


def numbered(tasks: Sequence[AnyTask]) -> bool:
    """Every task says which turn it belongs to."""
    return all(task.turn is not None for task in tasks)


def turns_of(tasks: Sequence[AnyTask]) -> tuple[Turn, ...]:
    """The turns of a job, in order.

    The different turn numbers, ascending; gaps and the first number do not matter. Where any task
    lacks its number, all turns come from the times: a task that starts at or after the end of all
    that started before it opens a new turn, one without an end is open-ended, one that never
    started belongs to no turn.
    """
    if not numbered(tasks):
        return _from_times(tasks)
    by_number: dict[int, list[AnyTask]] = defaultdict(list)
    for task in tasks:
        by_number[task.turn or 0].append(task)
    return tuple(tuple(by_number[number]) for number in sorted(by_number))


def _from_times(tasks: Sequence[AnyTask]) -> tuple[Turn, ...]:
    # Equal starts are told apart by end and id, so that the record's order changes nothing.
    started = sorted(
        (task.started_at, task.ended_at or _NEVER, task.id, task)
        for task in tasks
        if task.started_at is not None
    )
    turns: list[list[AnyTask]] = []
    last_end = datetime.min.replace(tzinfo=UTC)
    for start, end, _, task in started:
        if not turns or start >= last_end:
            turns.append([])
        turns[-1].append(task)
        last_end = max(last_end, end)
    return tuple(tuple(turn) for turn in turns)
