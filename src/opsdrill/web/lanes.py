"""Lanes: hosts as rows, turns as bands, tasks as bars in time, in units of one drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from opsdrill.app.lines import Line, Lines
from opsdrill.grading.turns import turns_of
from opsdrill.model.job import Task, ToolCall
from opsdrill.web.lines import one_line

WIDTH, NAMES = 1200, 150
ROW, BAR, TOP = 30, 16, 26
MOST_TASKS, MOST_HOSTS, MOST_TICKS = 500, 60, 2000
NAME = 20
"""Characters of a host's name beside its row."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A task."""

    line: int
    x: float
    y: int
    width: float
    status: str
    title: str


@dataclass(frozen=True, slots=True)
class Tick:
    """A command within a task."""

    x: float
    y: int
    bad: bool


@dataclass(frozen=True, slots=True)
class Band:
    """A turn."""

    number: int
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Row:
    """A host."""

    name: str
    whole: str
    y: int


@dataclass(frozen=True, slots=True)
class Lanes:
    """The drawing; `left_out` tasks or hosts are not in it; not `timed`: tasks stand in order."""

    rows: Sequence[Row]
    bars: Sequence[Bar]
    bands: Sequence[Band]
    ticks: Sequence[Tick]
    height: int
    left_out: int
    timed: bool
    length: float | None


def lanes(found: Lines, now: datetime) -> Lanes:
    """The drawing of a record.

    Args:
        found: the record.
        now: where a task ends that goes on.
    """
    every = [(line, line.piece) for line in found.tasks if isinstance(line.piece, Task)]
    hosts = list(dict.fromkeys(task.host for _, task in every))[:MOST_HOSTS]
    shown = [(line, task) for line, task in every if task.host in hosts][:MOST_TASKS]
    starts = [task.started_at for _, task in shown if task.started_at]
    timed = bool(shown) and len(starts) == len(shown)
    spans = _in_time(shown, now) if timed else _in_order(shown)
    rows = [Row(_short(host), host, TOP + place * ROW) for place, host in enumerate(hosts)]
    heights = {row.whole: row.y + (ROW - BAR) // 2 for row in rows}
    bars = [
        Bar(line.number, x, heights[task.host], max(end - x, 3), task.status, _title(task))
        for (line, task), (x, end) in zip(shown, spans, strict=True)
    ]
    length = _length(shown, now) if timed else None
    return Lanes(
        rows,
        bars,
        _bands(
            [task for _, task in shown], dict(zip([id(t) for _, t in shown], spans, strict=True))
        ),
        _ticks(shown, now, heights) if timed else (),
        TOP + len(hosts) * ROW + 4,
        len(every) - len(shown),
        timed,
        length,
    )


_Shown = Sequence[tuple[Line, Task]]


def _short(host: str) -> str:
    return host if len(host) <= NAME else f"{host[: NAME - 1]}…"


def _ends(shown: _Shown, now: datetime) -> tuple[datetime, datetime]:
    starts = [task.started_at for _, task in shown if task.started_at]
    ends = [task.ended_at or _last(task) or now for _, task in shown]
    return min(starts), max(*ends, *starts)


def _last(task: Task) -> datetime | None:
    """When something last happened in a task that has no end, if the task is over."""
    if task.status == "running":
        return None
    times = [call.ended_at or call.started_at for call in task.tool_calls]
    return max((at for at in times if at), default=task.started_at)


def _length(shown: _Shown, now: datetime) -> float:
    first, last = _ends(shown, now)
    return (last - first).total_seconds()


def _scale(shown: _Shown, now: datetime) -> tuple[datetime, float]:
    first, last = _ends(shown, now)
    seconds = max((last - first).total_seconds(), 1e-6)
    return first, (WIDTH - NAMES - 8) / seconds


def _in_time(shown: _Shown, now: datetime) -> list[tuple[float, float]]:
    first, scale = _scale(shown, now)

    def x(moment: datetime) -> float:
        return round(NAMES + (moment - first).total_seconds() * scale, 2)

    return [
        (x(task.started_at or first), x(task.ended_at or _last(task) or now)) for _, task in shown
    ]


def _in_order(shown: _Shown) -> list[tuple[float, float]]:
    """Where times are missing: one column for each turn, or for each task."""
    turns = [task.turn for _, task in shown]
    if all(turn is not None for turn in turns):
        order = {turn: place for place, turn in enumerate(sorted({t or 0 for t in turns}))}
        columns = [order[turn or 0] for turn in turns]
    else:
        columns = list(range(len(shown)))
    width = (WIDTH - NAMES - 8) / (max(columns, default=0) + 1)
    return [
        (round(NAMES + column * width + 2, 2), round(NAMES + (column + 1) * width - 2, 2))
        for column in columns
    ]


def _bands(tasks: Sequence[Task], spans: dict[int, tuple[float, float]]) -> list[Band]:
    bands = []
    for number, turn in enumerate(turns_of(tasks), 1):
        own = [spans[id(task)] for task in turn]
        x, end = min(start for start, _ in own), max(end for _, end in own)
        bands.append(Band(number, x, max(end - x, 3)))
    return bands


def _ticks(shown: _Shown, now: datetime, heights: dict[str, int]) -> list[Tick]:
    first, scale = _scale(shown, now)
    ticks: list[Tick] = []
    taken: set[tuple[int, int]] = set()
    for _, task in shown:
        y = heights[task.host]
        for call in task.tool_calls:
            if call.started_at is None:
                continue
            x = round(NAMES + (call.started_at - first).total_seconds() * scale, 1)
            if (int(x), y) in taken or len(ticks) >= MOST_TICKS:
                continue  # one pixel shows one command
            taken.add((int(x), y))
            ticks.append(Tick(x, y, _bad(call)))
    return ticks


def _bad(call: ToolCall) -> bool:
    return call.outcome != "ran" or bool(call.exit_code)


def _title(task: Task) -> str:
    commands = len(task.tool_calls)
    said = one_line(task.description or task.summary or "")
    count = f"{commands} tool call{'' if commands == 1 else 's'}"
    return ", ".join(filter(None, (f"{task.host}: {said or task.id}", task.status, count)))
