"""Reconcile: two witnesses of the same work, the agent's report and the gateway, become one record.

What the gateway saw ran, whatever the agent says; what the agent reports and a gateway that saw
everything did not see, never ran. What a gateway may have missed stays as it was reported.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate

from opsdrill.evidence.pairing import Pairing
from opsdrill.evidence.wrapping import unwrapped, without_folder
from opsdrill.model.job import JobRecord, Task, ToolCall

_WRITES = ("write_file", "update_file")


@dataclass(frozen=True, slots=True)
class Witnessed:
    """A call that the gateway saw: a shell command, or a file that was written.

    Args:
        host: where.
        call: what, with its outcome and times.
    """

    host: str
    call: ToolCall


@dataclass(frozen=True, slots=True)
class Reported:
    """A call that the agent reported, and in which task."""

    task: str
    host: str
    call: ToolCall


@dataclass(frozen=True, slots=True)
class Reconciled:
    """One record of both witnesses, and what only one of them tells.

    Args:
        record: every call once, with its witness.
        never_run: shell commands that were reported and never ran.
        not_reported: what ran and was not reported.
    """

    record: JobRecord
    never_run: tuple[Reported, ...]
    not_reported: tuple[Witnessed, ...]


def reconcile(
    record: JobRecord, seen: Sequence[Witnessed], *, guarded: Collection[str]
) -> Reconciled:
    """One job record from what the agent reports and what the gateway saw.

    A shell command is the same when its text is; next best, when it is but for what a shell adds
    around it: `bash -lc '...'`, and `cd FOLDER &&` on one side. A file is the same when its path
    is. Repeated ones are paired in order, those nearest in time where their numbers differ.

    A call of both witnesses stands where it was reported, with the text, the outcome and the times
    that the gateway saw. A shell command that was not seen gets the outcome `claimed`, on hosts
    that are guarded; a file may have been written by other means, so its report stays. What was not
    reported is put into a task on its host, behind what the gateway saw before it; a host without
    any task gets one.

    Args:
        record: the agent's own report.
        seen: all that the gateway saw, in the order it did.
        guarded: the hosts where nothing could run unseen: all access went through the gateway, and
            it could tell every command apart.
    """
    reported = [
        Reported(task.id, task.host, call) for task in record.tasks for call in task.tool_calls
    ]
    pairs = _pairs(reported, seen)
    merged = {a: _both(reported[a].call, seen[b].call) for a, b in pairs.items()}
    never = [
        place
        for place, one in enumerate(reported)
        if place not in merged and one.host in guarded and _claims_to_have_run(one.call)
    ]
    for place in never:
        merged[place] = reported[place].call.model_copy(update={"outcome": "claimed"})
    partners = {b: a for a, b in pairs.items()}
    tasks = _Tasks(record.tasks, merged)
    for number, witnessed in enumerate(seen):
        if (partner := partners.get(number)) is not None:
            tasks.pass_by(witnessed.host, partner)
        else:
            tasks.insert(witnessed)
    return Reconciled(
        record=record.model_copy(update={"tasks": tasks.tasks()}),
        never_run=tuple(
            Reported(reported[place].task, reported[place].host, merged[place]) for place in never
        ),
        not_reported=tuple(
            one
            for number, one in enumerate(seen)
            if number not in partners or reported[partners[number]].call.witness == "gateway"
        ),
    )


def _claims_to_have_run(call: ToolCall) -> bool:
    return call.kind == "shell" and call.outcome != "refused" and call.witness == "agent"


# which is which


def _pairs(reported: Sequence[Reported], seen: Sequence[Witnessed]) -> dict[int, int]:
    """The place of each reported call that was seen, and where it was."""
    pairing = Pairing(
        [one.call.started_at for one in reported], [one.call.started_at for one in seen]
    )
    told = [(one.host, one.call) for one in reported]
    saw = [(one.host, one.call) for one in seen]
    # What was made of both witnesses before: the same again.
    pairing.match(lambda a: _whole(*told[a]), lambda b: _whole(*saw[b]))
    pairing.match(lambda a: _exact(*told[a]), lambda b: _exact(*saw[b]))
    pairing.match(lambda a: _bare(*told[a]), lambda b: _bare(*saw[b]))
    # On one side only: `cd /a && make` and `cd /b && make` are not the same.
    pairing.match(lambda a: _bare(*told[a]), lambda b: _elsewhere(*saw[b]))
    pairing.match(lambda a: _elsewhere(*told[a]), lambda b: _bare(*saw[b]))
    return dict(pairing.pairs)


def _whole(host: str, call: ToolCall) -> Hashable | None:
    if (what := _exact(host, call)) is None:
        return None
    return (what, call.outcome, call.exit_code, call.started_at, call.ended_at, call.output)


def _exact(host: str, call: ToolCall) -> Hashable | None:
    if call.kind == "shell":
        return (host, "shell", call.command)
    return (host, "file", call.path) if call.kind in _WRITES else None


def _bare(host: str, call: ToolCall) -> Hashable | None:
    return (host, unwrapped(call.command)) if call.kind == "shell" else None


def _elsewhere(host: str, call: ToolCall) -> Hashable | None:
    if call.kind != "shell":
        return None
    inner = without_folder(unwrapped(call.command))
    return None if inner is None else (host, unwrapped(inner))


def _both(reported: ToolCall, seen: ToolCall) -> ToolCall:
    """The call as the gateway saw it, with what only the agent can tell of it."""
    if reported.witness == "gateway":
        return reported
    update: dict[str, object] = {
        "outcome": seen.outcome,
        "exit_code": seen.exit_code,
        "started_at": seen.started_at or reported.started_at,
        "ended_at": seen.ended_at or reported.ended_at,
        "output": reported.output if seen.output is None else seen.output,
        "witness": "both",
    }
    if reported.kind == "shell" and isinstance(reported.arguments, dict):
        update["arguments"] = {**reported.arguments, "command": seen.command}
    return reported.model_copy(update=update)


# where it goes


class _Tasks:
    """The tasks of a record, while calls are put into them.

    Args:
        tasks: as reported.
        merged: calls that become others, by their place among all reported calls.
    """

    def __init__(self, tasks: Sequence[Task], merged: dict[int, ToolCall]) -> None:
        self._tasks = list(tasks)
        self._calls: list[list[ToolCall]] = []
        self._inserted: list[dict[int, list[ToolCall]]] = []
        self._where: list[tuple[int, int]] = []
        self._on: dict[str, list[int]] = defaultdict(list)
        self._last: dict[str, tuple[int, int]] = {}
        self._starts: dict[str, tuple[list[datetime], list[int]]] = {}
        for number, task in enumerate(tasks):
            first = len(self._where)
            self._where += [(number, place) for place in range(len(task.tool_calls))]
            self._calls.append(
                [merged.get(first + place, call) for place, call in enumerate(task.tool_calls)]
            )
            self._inserted.append(defaultdict(list))
            self._on[task.host].append(number)

    def pass_by(self, host: str, reported: int) -> None:
        """The gateway saw this reported call next on a host."""
        # Never back: where the agent reports in another order, the gateway's stays what it is.
        self._last[host] = max(self._last.get(host, (0, -1)), self._where[reported])

    def insert(self, witnessed: Witnessed) -> None:
        """Put in a call that was not reported."""
        host, call = witnessed.host, witnessed.call
        call = call.model_copy(update={"witness": "gateway"})
        task, place = self._last.get(host) or self._begin(host)
        if (later := self._later(host, task, call.started_at)) is not None:
            task, place = later, -1
        self._last[host] = (task, place)
        self._inserted[task][place].append(call)

    def _begin(self, host: str) -> tuple[int, int]:
        """Before the first call of the first task on a host; one is made where there is none."""
        if host not in self._on:
            names = {task.id for task in self._tasks}
            name, number = f"gateway-{host}", 2
            while name in names:
                name, number = f"gateway-{host}-{number}", number + 1
            self._on[host].append(len(self._tasks))
            self._tasks.append(Task(id=name, host=host, status="completed"))
            self._calls.append([])
            self._inserted.append(defaultdict(list))
        return self._on[host][0], -1

    def _later(self, host: str, task: int, at: datetime | None) -> int | None:
        """A later task on the host that had begun when a call was made; the last such one."""
        if at is None:
            return None
        if host not in self._starts:
            begun = sorted(
                (start, number)
                for number in self._on[host]
                if (start := self._tasks[number].started_at) is not None
            )
            latest = list(accumulate((number for _, number in begun), max))
            self._starts[host] = ([start for start, _ in begun], latest)
        starts, latest = self._starts[host]
        place = bisect_right(starts, at) - 1
        return latest[place] if place >= 0 and latest[place] > task else None

    def tasks(self) -> tuple[Task, ...]:
        """The tasks with all their calls."""
        return tuple(self._with_calls(number) for number in range(len(self._tasks)))

    def _with_calls(self, number: int) -> Task:
        inserted = self._inserted[number]
        calls = list(inserted.get(-1, ()))
        for place, call in enumerate(self._calls[number]):
            calls += [call, *inserted.get(place, ())]
        return self._tasks[number].model_copy(update={"tool_calls": tuple(calls)})
