"""A transcript in the making of a job record: what all importers say in the same words.

An importer tells what it reads, in the file's order; the coverage, the tasks of hosts, the times
and the end of the job are worked out here, once for all formats.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from opsdrill.evidence.transcripts.clock import Clock
from opsdrill.evidence.transcripts.imported import Imported, Placing
from opsdrill.evidence.transcripts.ledger import Ledger
from opsdrill.evidence.transcripts.work import Work
from opsdrill.model.job import (
    Coverage,
    Job,
    JobRecord,
    JobStatus,
    Seen,
    Stop,
    Task,
    TaskStatus,
    ToolKind,
)
from opsdrill.model.ticket import Ticket, TicketMessage

TOLD = frozenset(
    {
        "executed_commands",
        "write_file",
        "update_file",
        "use_mcp_tool",
        "tool_calls",
        "agent_messages",
        "task_description",
        "task_summary",
    }
)
"""The targets that a transcript of an agent's own messages and tool calls holds."""

CUT_SHORT = Stop(reason="the transcript ends before the agent did", fault="infrastructure")

_KIND_TARGET: dict[ToolKind, str] = {
    "shell": "executed_commands",
    "write_file": "write_file",
    "update_file": "update_file",
    "mcp": "use_mcp_tool",
}


class Transcript:
    """One job, as an importer tells it.

    Args:
        format: the importer's name, e.g. `codex`.
        title: the format's name for people.
        placing: where commands ran.
        told: the targets of which the format holds everything; all others are unavailable.

    Attributes:
        clock: reads its times.
        ledger: where an importer says what is missing and what is to be told.
        job: the job's id, where the transcript names a session.
        agent: who wrote it: program, version, model.
    """

    def __init__(
        self, format: str, title: str, placing: Placing, told: Iterable[str] = TOLD
    ) -> None:
        self.title = title
        self._told = frozenset(told)
        self.clock = Clock()
        self.ledger = Ledger(self._told | {"tasks", "times"})
        self.job: str | None = None
        self.agent: str | None = None
        self._format = format
        self._placing = placing
        self._works: dict[str, Work] = {}
        self._asked: list[TicketMessage] = []
        self._end: tuple[JobStatus, str | None, Stop | None] | None = None
        self._delegated: dict[str, None] = {}

    def written_by(
        self, program: str, version: str | None = None, model: str | None = None
    ) -> None:
        """Which program wrote it; what is not known yet may be told later."""
        self.agent = ", ".join(
            part for part in (f"{program} {version}" if version else program, model) if part
        )

    @property
    def main(self) -> Work:
        """The work of the agent that was asked."""
        return self.work("main")

    def work(self, id: str) -> Work:
        """The work of one agent; made when it is first asked for."""
        id = id or "agent"
        if id not in self._works:
            self._works[id] = Work(id, self.ledger)
        return self._works[id]

    def delegate(self, id: str) -> None:
        """The agent set another one to work; where its steps are, they are the work of this id.

        Where they are not, nobody knows what it did.
        """
        self._delegated[id] = None

    def ask(self, text: str | None, *, at: datetime | None = None) -> None:
        """What the agent was asked: at first the ticket, later more messages of the requester."""
        if text and text.strip() and self.ledger.room(text):
            self._asked.append(TicketMessage(at=at, author="requester", body=text))
            main = self.main
            if main.description is None:
                main.description = text

    def end(
        self, status: JobStatus = "completed", reason: str | None = None, stop: Stop | None = None
    ) -> None:
        """The transcript says that the agent ended, and how; the last word counts.

        Args:
            status: `completed` when it came to its own end.
            reason: the transcript's word for it, e.g. `end_turn`.
            stop: why it was stopped, and whose fault that was.
        """
        self._end = (status, reason, stop)

    def goes_on(self) -> None:
        """The agent works on after what looked like an end."""
        self._end = None

    def imported(self, name: str = "") -> Imported:
        """The job record.

        Args:
            name: what tells it from others in the same file.

        Raises:
            UsageError: nobody says on which host the agent worked.
        """
        status, reason, stop = self._end or ("failed", None, CUT_SHORT)
        if self._end is None:
            self.ledger.warn(CUT_SHORT.reason)
        if any(id not in self._works or not self._works[id].told for id in self._delegated):
            self.ledger.lose("an agent that this one called is not in it")
        main = self.main
        main.stop_reason = main.stop_reason or reason
        moments = [moment for work in self._works.values() for moment in work.moments()]
        moments += [message.at for message in self._asked if message.at is not None]
        record = JobRecord(
            format="opsdrill.job/1",
            job=Job(
                id=self.job or "imported",
                status=status,
                resolution="success" if status == "completed" else None,
                resolution_source="adapter" if status == "completed" else None,
                created_at=min(moments, default=None),
                ended_at=max(moments, default=None) if self._end else None,
            ),
            ticket=Ticket(
                body=self._asked[0].body if self._asked else "", messages=tuple(self._asked[1:])
            ),
            tasks=tuple(self._tasks(status)),
            coverage=self._coverage(),
            stop=stop,
        )
        return Imported(name, self._format, self.agent, record, tuple(self.ledger.warnings()))

    def _tasks(self, status: JobStatus) -> list[Task]:
        left: TaskStatus = status if self._end else "running"
        found: list[Task] = []
        for work in self._works.values():
            # An agent that another one called came to its own end, if nobody says otherwise.
            own: TaskStatus = left if work.id == "main" or work.unreturned else "completed"
            found += work.tasks(self._placing, own)
        return list(_named_apart(found))

    def _coverage(self) -> Coverage:
        seen = {target: Seen(state="whole") for target in self._told | {"tasks"}}
        seen["times"] = self._times()
        undescribed = [work for work in self._works.values() if work.description is None]
        if undescribed and "task_description" in seen:
            some = len(undescribed) < len(self._works)
            seen["task_description"] = Seen(
                state="partial" if some else "unavailable",
                why="it does not say what an agent was asked",
            )
        lost = dict(self.ledger.lost)
        for work in self._works.values():
            for kind in sorted(work.nameless):
                why = "a call does not say its command or its path"
                lost.setdefault(_KIND_TARGET.get(kind, "tool_calls"), why)
            lost = {**work.hidden, **lost}
            for kind in sorted(work.unreturned):
                for target in {_KIND_TARGET.get(kind), "tool_calls"} - {None}:
                    lost.setdefault(target or "", "a call has no result, so it may not have run")
        if self._end is None:
            for target in [*self._told, "tasks"]:
                lost.setdefault(target, CUT_SHORT.reason)
        for target, why in lost.items():
            if target in seen and seen[target].state == "whole":
                seen[target] = Seen(state="partial", why=why)
        why = f"{self.title} transcripts do not hold it"
        return Coverage(
            default=Seen(state="unavailable", why=why),
            **{name: seen[name] for name in Coverage.model_fields if name in seen},
        )

    def _times(self) -> Seen:
        clock = self.clock
        if clock.naive and clock.zoned:
            why = "some times have a zone and some have none, so they do not compare"
            return Seen(state="unavailable", why=why)
        if not clock.naive + clock.zoned:
            return Seen(state="unavailable", why="there are no times in it")
        if clock.naive:
            self.ledger.warn("its times have no zone; they are taken as UTC")
        if clock.unread:
            return Seen(state="partial", why="some times cannot be read")
        return Seen(state="whole")


def _named_apart(tasks: Iterable[Task]) -> Iterable[Task]:
    """The tasks, none of which has the id of another."""
    taken: set[str] = set()
    for task in tasks:
        id, number = task.id, 1
        while id in taken:
            number += 1
            id = f"{task.id}#{number}"
        taken.add(id)
        yield task if id == task.id else task.model_copy(update={"id": id})
