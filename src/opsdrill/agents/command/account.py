"""The agent's own account: its transcript, read when it ended and held against the gateway's."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from opsdrill.errors import OpsDrillError
from opsdrill.evidence.importers.importer import importer_for
from opsdrill.evidence.masking import masked
from opsdrill.evidence.reconcile import Reported as ReportedCall
from opsdrill.evidence.reconcile import Witnessed, reconcile
from opsdrill.evidence.recorder import Recorder
from opsdrill.evidence.transcripts.imported import Imported, Placing
from opsdrill.evidence.transcripts.source import Damaged, Source
from opsdrill.model.event import (
    Confirmed,
    Reported,
    Said,
    TaskCreated,
    TaskStarted,
    ToolCalled,
    ToolReturned,
    Used,
)
from opsdrill.model.job import Seen, Task, ToolCall, Usage

LOCAL = "this machine"
"""Where calls of a transcript belong that ran on no host; no host can be called so."""
_TOLD = ("use_mcp_tool", "agent_messages")
FILES = 20
"""Transcripts that are read of one job."""


@dataclass(frozen=True, slots=True)
class Account:
    """What the agent itself tells.

    Args:
        by: the program that wrote it.
        tasks: all that it tells, on hosts and on its own machine.
        seen: how much of what only it can tell is there, by target.
    """

    by: str
    tasks: tuple[Task, ...]
    seen: Mapping[str, Seen]


def read_account(paths: Sequence[Path], unread: str | None = None) -> Account | str:
    """What the transcripts tell; or why there is nothing to be read.

    Args:
        unread: why these are not all that there were; None: they are.
    """
    if not paths:
        return "the agent left no transcript where one is looked for"
    read: list[Imported] = []
    why = unread or ""
    if len(paths) > FILES:
        why = f"of {len(paths)} transcripts {FILES} are read"
    for path in paths[:FILES]:
        try:
            source = Source.of(path)
            _, importer = importer_for(source)
            read += importer.read(source, Placing(LOCAL, split_ssh=True))
        except (OpsDrillError, Damaged) as error:
            why = str(error)
        except Exception as error:
            # What a reader of ours trips over says nothing of the agent: its report is not seen.
            why = f"the reader of it failed: {type(error).__name__}: {error}"
    if not read:
        return f"the agent's transcript cannot be read: {why}"
    by = next((each.agent or each.format for each in read), "")
    tasks = tuple(task for each in read for task in each.record.tasks)
    return Account(by, tasks, {target: _worst(read, target, why) for target in _TOLD})


def _worst(read: Sequence[Imported], target: str, why: str) -> Seen:
    """How much of a target the transcripts hold; `why` one of them could not be read, if so."""
    seen = [each.record.coverage.of(target) for each in read]
    worst = next((one for one in seen if one.state != "whole"), seen[0])
    if why and worst.state == "whole":
        return Seen(state="partial", why=f"not all transcripts of the agent were read: {why}")
    return worst


def report_account(
    account: Account, recorder: Recorder, hosts: Collection[str], *, guarded: bool
) -> None:
    """Report what the account adds to what the gateway saw; no task may have ended yet.

    Args:
        account: not masked yet.
        recorder: what the gateway saw was recorded in it.
        hosts: the hosts of the run.
        guarded: the gateway saw every command: one that it did not see never ran.
    """
    _Telling(account, recorder, hosts, guarded).tell()


class _Telling:
    def __init__(
        self, account: Account, recorder: Recorder, hosts: Collection[str], guarded: bool
    ) -> None:
        self._account = account
        self._recorder = recorder
        self._hosts = hosts
        self._guarded = hosts if guarded else ()
        self._record = recorder.job_record()
        self._claims = 0
        self._taken = 0

    def tell(self) -> None:
        tasks = tuple(masked(self._recorder.mask, task) for task in self._account.tasks)
        self._recorder.record(Reported(by=self._account.by or "a program that is not named"))
        self._compare(tasks)
        self._words(tasks)
        if (usage := _sum(task.usage for task in tasks)) is not None:
            self._recorder.record(Used(task=None, usage=usage))

    def _compare(self, tasks: Sequence[Task]) -> None:
        seen = [
            (task.id, Witnessed(task.host, call))
            for task in self._record.tasks
            for call in task.tool_calls
            if call.witness == "gateway" and (call.outcome != "refused" or call.kind == "shell")
        ]
        hosts = self._hosts
        told = self._record.model_copy(
            update={"tasks": tuple(_apart(task for task in tasks if task.host in hosts))}
        )
        found = reconcile(told, [one for _, one in seen], guarded=self._guarded)
        unreported = {id(one) for one in found.not_reported}
        local = [
            call.command
            for task in tasks
            if task.host not in hosts
            for call in task.tool_calls
            if call.kind == "shell" and "ssh" in call.command
        ]
        for task, one in seen:
            if id(one) not in unreported or _named(one.call, local):
                assert one.call.id is not None
                self._recorder.record(Confirmed(task=task, call=one.call.id))
        for claim in found.never_run:
            self._claim(claim)

    def _claim(self, claim: ReportedCall) -> None:
        """A command that was reported and never ran."""
        task = next((task.id for task in self._record.tasks if task.host == claim.host), None)
        if task is None:
            task = claim.host
            self._recorder.record(TaskCreated(task=task, host=task))
            self._recorder.record(TaskStarted(task=task))
            self._record = self._recorder.job_record()
        self._claims += 1
        self._played(task, f"claimed.{self._claims}", claim.call, claim.call.started_at)

    def _words(self, tasks: Sequence[Task]) -> None:
        """What it said, and what it called that is on no host."""
        if not self._record.tasks:
            return
        said = [(message.at, message.text) for task in tasks for message in task.messages]
        for at, text in sorted(said, key=lambda item: (item[0] is None, item[0] or _EVER)):
            self._recorder.record(Said(task=self._task_at(at), text=text, at=at))
        for task in tasks:
            for call in task.tool_calls:
                if call.kind == "mcp":
                    self._taken += 1
                    name = f"own.{self._taken}"
                    self._played(self._task_at(call.started_at), name, call, call.started_at)

    def _played(self, task: str, name: str, call: ToolCall, at: datetime | None) -> None:
        self._recorder.record(
            ToolCalled(
                task=task,
                call=name,
                kind=call.kind,
                tool=call.tool,
                server=call.server,
                arguments=call.arguments,
                at=at,
            )
        )
        self._recorder.record(
            ToolReturned(
                task=task,
                call=name,
                outcome=call.outcome,
                exit_code=call.exit_code,
                output=call.output,
                at=call.ended_at or at,
            )
        )

    def _task_at(self, at: datetime | None) -> str:
        """The task that began last before a moment; the first where none had, or nobody knows."""
        tasks = self._record.tasks
        begun = [
            (task.started_at, number)
            for number, task in enumerate(tasks)
            if at is not None and task.started_at is not None and task.started_at <= at
        ]
        return tasks[max(begun)[1]].id if begun else tasks[0].id


def _named(call: ToolCall, local: Sequence[str]) -> bool:
    """Whether a command is a part of one that goes to hosts and was reported as a whole."""
    command = call.command.strip()
    return bool(command) and any(command in whole for whole in local)


def _apart(tasks: Iterator[Task]) -> Iterator[Task]:
    """Tasks of several transcripts, whose names may be the same."""
    for number, task in enumerate(tasks, start=1):
        yield task.model_copy(update={"id": f"{number}"})


def _sum(usages: Iterator[Usage | None]) -> Usage | None:
    known = [usage for usage in usages if usage is not None]
    if not known:
        return None

    def total(name: str) -> int | None:
        numbers = [getattr(usage, name) for usage in known]
        present = [number for number in numbers if number is not None]
        return sum(present) if present else None

    costs = [usage.cost_usd for usage in known if usage.cost_usd is not None]
    models = list(dict.fromkeys(usage.model for usage in known if usage.model))
    return Usage(
        model=", ".join(models) or None,
        input_tokens=total("input_tokens"),
        output_tokens=total("output_tokens"),
        cost_usd=sum(costs) if costs else None,
    )


_EVER = datetime.min.replace(tzinfo=UTC)
