"""The lines of a transcript: every piece of a job record in the order in which it is read.

Records that are sealed never change; the last few that were read are kept for whoever turns pages.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Literal, TypeAlias, get_args

from opsdrill.app.history import evidence_in, there
from opsdrill.grading.targets import CALLED, RAN
from opsdrill.model.job import AgentMessage, Job, JobRecord, Task, ToolCall
from opsdrill.model.ticket import TicketMessage
from opsdrill.store.store import Store

Kind = Literal["plan", "task", "call", "message", "ticket", "resolution"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Piece: TypeAlias = TicketMessage | Job | Task | ToolCall | AgentMessage

KEPT_RECORDS, KEPT_CHARACTERS = 3, 100_000_000
"""Records that are kept at most, and the characters of their outputs; the last one always is."""
FRESH_SECONDS = 0.5
"""How long what was read of a run that goes on is good for; longer where reading took long."""
MOST_FOUND = 10_000
READ_AT_ONCE = 2_000_000
"""Bytes of a record that nobody waits for long."""


@dataclass(frozen=True, slots=True)
class Line:
    """One piece of a record.

    Args:
        number: its place, from 0: the number of the same piece of evidence.
        kind: what it is.
        piece: the piece itself; a plan and a resolution have the job.
        task: its task.
        at: when it began, or was said.
        index: of a call or a message: its place in the task's own list.
    """

    number: int
    kind: Kind
    piece: Piece
    task: Task | None = None
    at: datetime | None = None
    index: int = 0


class Lines:
    """A record as lines. Not changed once made.

    Args:
        record: the job record.
        sealed: False: as far as it was recorded.
    """

    def __init__(self, record: JobRecord, *, sealed: bool = True) -> None:
        self.record = record
        self.sealed = sealed
        every = tuple(in_order(record))
        if not sealed and record.job is not None and record.job.resolution is None:
            every = every[:-1]  # how a job ends that goes on is not known
        self.all: Sequence[Line] = every

    def __len__(self) -> int:
        return len(self.all)

    @cached_property
    def size(self) -> int:
        """Characters of the outputs of all calls."""
        calls = (call for task in self.record.tasks for call in task.tool_calls)
        return sum(len(call.output or "") for call in calls)

    @cached_property
    def tasks(self) -> Sequence[Line]:
        """The line of each task, in order."""
        return [line for line in self.all if line.kind == "task"]

    def found(self, text: str) -> list[int]:
        """The lines that hold a text, in capitals or not; one more than `MOST_FOUND` at most."""
        wanted = text.casefold()
        numbers: list[int] = []
        for line in self.all:
            if any(wanted in part.casefold() for part in texts(line)):
                numbers.append(line.number)
                if len(numbers) > MOST_FOUND:
                    break
        return numbers

    def place(self, where: str, item: int) -> int | None:
        """The line of the value that a rule matched, by its place among the target's values."""
        found = self._targets.get(where)
        if found is None:
            found = self._targets[where] = list(self._of(where))
        return found[item] if 0 <= item < len(found) else None

    @cached_property
    def _targets(self) -> dict[str, list[int]]:
        return {}

    def _of(self, where: str) -> Iterator[int]:
        if where in ("job_plan", "job_resolution"):
            kind = "plan" if where == "job_plan" else "resolution"
            job = self.record.job
            said = job and (job.plan if kind == "plan" else job.resolution_reasoning)
            if said:
                yield from (line.number for line in self.all[-1:] if kind == "resolution")
                yield from (line.number for line in self.all if line.kind == kind == "plan")
        elif where in ("gateway_messages", "gateway_summary"):
            yield from self._posted(last=where == "gateway_summary")
        else:
            # Values stand in the order of the task's list, lines may stand in that of time.
            of_task: dict[int, list[Line]] = {}
            for line in self.all:
                if line.task is not None:
                    of_task.setdefault(id(line.task), []).append(line)
            for task in self.record.tasks:
                lines = sorted(of_task.get(id(task), ()), key=lambda line: line.index)
                yield from _values(where, task, lines)

    def _posted(self, *, last: bool) -> Iterator[int]:
        said = [
            line
            for line in self.all
            if isinstance(line.piece, TicketMessage) and line.piece.author == "agent"
        ]
        if all(line.at is not None for line in said):
            said.sort(key=lambda line: line.at.timestamp() if line.at else 0.0)
        chosen = said[-1:] if last else said[:-1]
        yield from (line.number for line in chosen if _body(line))


def _body(line: Line) -> str:
    return line.piece.body if isinstance(line.piece, TicketMessage) else ""


_CALLS: Mapping[str, Callable[[ToolCall], bool]] = {
    "executed_commands": lambda call: bool(call.command) and call.outcome in RAN,
    "write_file": lambda call: _filed(call, "write_file"),
    "update_file": lambda call: _filed(call, "update_file"),
    "use_mcp_tool": lambda call: (
        call.kind == "mcp" and call.outcome in CALLED and bool(call.server or _given(call))
    ),
    "tool_calls": lambda call: call.outcome in CALLED and _given(call),
}


def _filed(call: ToolCall, kind: str) -> bool:
    return call.kind == kind and call.outcome == "ran" and bool(call.path)


def _given(call: ToolCall) -> bool:
    return bool(call.tool) or call.arguments not in (None, {}, [], "")


def _values(where: str, task: Task, lines: Sequence[Line]) -> Iterator[int]:
    """The line of each value of a target that one task has."""
    about = next((line.number for line in lines if line.kind == "task"), None)
    if where in _CALLS:
        fits = _CALLS[where]
        for line in lines:
            if isinstance(line.piece, ToolCall) and fits(line.piece):
                yield line.number
    elif where == "agent_messages":
        for line in lines:
            if isinstance(line.piece, AgentMessage) and line.piece.text:
                yield line.number
    elif about is not None:
        count = {
            "task_summary": int(bool(task.stop_reason or task.summary)),
            "task_description": int(bool(task.description)),
            "operational_rules": sum(bool(rule) for rule in task.operational_rules or ()),
        }.get(where, 0)
        yield from [about] * count


def in_order(record: JobRecord) -> Iterator[Line]:
    """Everything in a record, in the order in which it is read."""
    for number, (kind, piece, task, at, index) in enumerate(_unnumbered(record)):
        yield Line(number, kind, piece, task, at, index)


_Part: TypeAlias = tuple[Kind, Piece, Task | None, datetime | None, int]


def _unnumbered(record: JobRecord) -> Iterator[_Part]:
    for index, message in enumerate(record.ticket.messages):
        yield "ticket", message, None, message.at, index
    job = record.job
    if job is not None and job.plan is not None:
        yield "plan", job, None, job.created_at, 0
    for task in record.tasks:
        yield from _of_task(task)
    if job is not None:
        yield "resolution", job, None, job.ended_at, 0


def _of_task(task: Task) -> Iterator[_Part]:
    yield "task", task, task, task.started_at, 0
    both: list[_Part] = [
        ("call", call, task, call.started_at, index) for index, call in enumerate(task.tool_calls)
    ]
    both += [
        ("message", message, task, message.at, index) for index, message in enumerate(task.messages)
    ]
    if all(at is not None for _, _, _, at, _ in both):
        both.sort(key=lambda each: each[3].timestamp() if each[3] else 0.0)
    yield from both


def texts(line: Line) -> Iterator[str]:
    """Every text of a line that somebody may look for."""
    piece = line.piece
    if isinstance(piece, ToolCall):
        said = piece.command or piece.path or written(piece)
        yield from filter(None, (said, piece.output, piece.tool, piece.server))
    elif isinstance(piece, Task):
        parts = (piece.id, piece.host, piece.description, piece.stop_reason, piece.summary)
        yield from filter(None, (*parts, *(piece.operational_rules or ())))
    elif isinstance(piece, AgentMessage):
        yield piece.text
    elif isinstance(piece, TicketMessage):
        yield from filter(None, (piece.body, piece.name))
    elif line.kind == "plan":
        yield piece.plan or ""
    else:
        yield from filter(None, (piece.resolution, piece.resolution_reasoning, piece.status))


def written(call: ToolCall) -> str:
    """The arguments of a call as JSON; empty where there are none."""
    if call.arguments in (None, {}, [], ""):
        return ""
    return json.dumps(call.arguments, ensure_ascii=False)


class OpenRecords:
    """The records that were read last, as lines. Several threads may use it.

    Args:
        store: where they are kept.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[str, tuple[Lines, float]] = OrderedDict()
        self._lock = threading.Lock()
        self._reading = threading.Lock()

    def lines(self, run: str, *, fresh: bool = False) -> Lines:
        """A run's record; one that is not sealed may be a moment old, unless `fresh` is asked.

        Raises:
            NotThere: there is no such run.
        """
        with there(run):
            self._store.get(run)  # a run that was deleted is not there, whatever is kept here
        with self._reading:  # who asks meanwhile gets what was read
            kept = self._found(run, fresh=fresh)
            if kept is not None:
                return kept
            began = time.monotonic()
            sealed = self._store.record(run)
            made = Lines(sealed or evidence_in(self._store, run), sealed=sealed is not None)
            took = time.monotonic() - began
            good_until = time.monotonic() + max(FRESH_SECONDS, 2 * took)
            with self._lock:
                self._kept[run] = made, good_until
                self._kept.move_to_end(run)
                while len(self._kept) > 1 and self._too_much():
                    self._kept.popitem(last=False)
            return made

    def at_hand(self, run: str) -> Lines | None:
        """As `lines`, fresh; None where reading the record would take a while.

        Raises:
            NotThere: there is no such run.
        """
        if self._found(run, fresh=True) is None:
            with there(run):
                if self._store.record_size(run) > READ_AT_ONCE:
                    return None
        return self.lines(run, fresh=True)

    def _too_much(self) -> bool:
        size = sum(lines.size for lines, _ in self._kept.values())
        return len(self._kept) > KEPT_RECORDS or size > KEPT_CHARACTERS

    def forget(self, run: str) -> None:
        """Read a run's record anew when it is asked for again."""
        with self._lock:
            self._kept.pop(run, None)

    def _found(self, run: str, *, fresh: bool) -> Lines | None:
        with self._lock:
            kept = self._kept.get(run)
            if kept is None:
                return None
            if not kept[0].sealed and (fresh or time.monotonic() >= kept[1]):
                return None
            self._kept.move_to_end(run)
            return kept[0]
