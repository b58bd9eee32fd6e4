"""One job of a command agent, from the open gateway to the last word."""

from __future__ import annotations

import asyncio
import shutil
import signal
import tempfile
from collections.abc import Coroutine, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from opsdrill.agents.adapter import AdapterContext, Assignment
from opsdrill.agents.command.account import Account, read_account, report_account
from opsdrill.agents.command.kept import KeptFiles
from opsdrill.agents.command.surroundings import (
    Layout,
    Links,
    Program,
    new_token,
    passed,
    path_of,
    room_for,
    ticket_words,
)
from opsdrill.agents.gateway import Gateway
from opsdrill.agents.isolation.confined import Confined, Ending
from opsdrill.agents.isolation.probe import why_not_isolated
from opsdrill.agents.isolation.room import Room
from opsdrill.agents.ticket_desk import TicketDesk
from opsdrill.errors import AgentUnavailable, OpsDrillError
from opsdrill.evidence.recorder import Recorder
from opsdrill.model.event import (
    Covered,
    Isolated,
    JobCreated,
    JobEnded,
    JobEvent,
    Posted,
    Resolved,
    TaskCreated,
    TaskEnded,
)
from opsdrill.model.job import Coverage, Seen, TaskStatus

_SEEN = Seen(state="whole", why="seen by the gateway in front of the hosts")
_UNNAMED = Seen(state="unavailable", why="the agent names no tasks: there is one for each host")
_PAST = "the agent was not isolated: it may have reached a host past the gateway"


@dataclass(frozen=True, slots=True)
class _Place:
    """Folders of one job.

    Args:
        kept: for what the agent leaves.
        keys: for the gateway's files, until the agent has them.
        plain: for everything of an agent that cannot be isolated.
    """

    kept: Path
    keys: Path
    plain: Path


class _Reports:
    """The recorder, as the gateway has it: a task carries the rules, and ends when all is told."""

    def __init__(self, recorder: Recorder, rules: tuple[str, ...]) -> None:
        self._recorder = recorder
        self._rules = rules

    def record(self, event: JobEvent) -> None:
        if isinstance(event, TaskEnded):
            return
        if isinstance(event, TaskCreated):
            event = event.model_copy(update={"operational_rules": self._rules})
        self._recorder.record(event)


class CommandJob:
    """One job.

    Args:
        program: what is started.
        context: of the adapter.
    """

    def __init__(self, program: Program, context: AdapterContext) -> None:
        self._program = program
        self._context = context
        preset = program.preset
        self._name = preset.title if preset else Path(program.argv[0]).name
        own = context.settings.transcript
        found = preset.transcripts if preset else ()
        self._transcripts = (own,) if own is not None else found

    async def work(self, assignment: Assignment, recorder: Recorder) -> None:
        """Work the ticket to its end.

        Raises:
            AgentUnavailable: the program cannot be started.
        """
        recorder.record(JobCreated(job="job-1"))
        refused = await why_not_isolated()
        recorder.record(Isolated(isolation="namespaces" if refused is None else "none"))
        reports = _Reports(recorder, assignment.operational_rules)
        ticket, hosts = assignment.ticket, assignment.hosts
        desk = TicketDesk(ticket, tuple(hosts), assignment.operational_rules, reports)
        gateway = Gateway(hosts, reports, agent=self._name, users=assignment.users)
        with (
            _folders(self._context.keep) as place,
            closing(KeptFiles(place.kept, recorder.mask)) as kept,
        ):
            layout = Layout.isolated() if refused is None else Layout.plain(place.plain)
            after = _Aftermath(recorder, gateway, desk, kept, frozenset(hosts))
            status: TaskStatus = "cancelled"
            async with desk, gateway:
                try:
                    room = self._room(assignment, layout, desk, gateway, place)
                    ending, spent = await self._run(room, kept)
                    status = "timed_out" if spent else "completed"
                finally:
                    looked_for = bool(self._transcripts)
                    telling = after.tell(status, isolated=refused is None, looked_for=looked_for)
                    await _to_the_end(telling)
        if after.fault is not None:
            raise after.fault
        self._end(recorder, desk, ending, spent)

    def _room(
        self,
        assignment: Assignment,
        layout: Layout,
        desk: TicketDesk,
        gateway: Gateway,
        place: _Place,
    ) -> Room:
        gateway.ssh_config(place.keys, seen_as=Path(layout.ssh))
        context = self._context
        links = Links(
            run=context.run or new_token(),
            ticket_url=desk.url,
            ticket_token=desk.token,
            ssh={file.name: file.read_text() for file in place.keys.iterdir()},
        )
        hidden = [*context.hidden]
        if context.scenario_folder is not None:
            hidden.append(context.scenario_folder)
        hosts, rules = tuple(assignment.hosts), assignment.operational_rules
        return room_for(
            self._program,
            path_of(self._program, context.folder or Path()),
            layout,
            links,
            ticket_words(assignment.ticket, hosts, rules, assignment.users),
            hosts=hosts,
            variables=passed(self._program, context.settings.environment),
            hidden=hidden,
            transcripts=self._transcripts,
        )

    async def _run(self, room: Room, kept: KeptFiles) -> tuple[Ending, bool]:
        """Run the program; how it ended, and whether that was because its budget was spent."""
        confined = Confined(room, kept.out.take, kept.err.take, kept.take)
        budgets = self._context.settings.budgets
        spent = False
        running = asyncio.ensure_future(confined.run())
        try:
            seconds = budgets.seconds if budgets else None
            if not (await asyncio.wait({running}, timeout=seconds))[0]:
                spent = True
                confined.stop()
            ending = await running
        except asyncio.CancelledError:
            confined.stop()
            await asyncio.wait({running})
            with suppress(asyncio.CancelledError, Exception):
                running.result()
            raise
        if ending.refused or ending.cannot:
            why = ending.refused or ending.cannot
            raise AgentUnavailable(
                f"the program {self._program.argv[0]} cannot be started: {why}",
                hint="`opsdrill agents check` says whether it can",
            )
        return ending, spent

    def _end(self, recorder: Recorder, desk: TicketDesk, ending: Ending, spent: bool) -> None:
        """Say how the job ended."""
        if spent and (budgets := self._context.settings.budgets):
            reason = f"the budget of {budgets.seconds:g} seconds was spent"
            recorder.record(JobEnded(status="timed_out", reason=reason, fault="agent"))
            return
        status = ending.status
        if desk.resolution is None:
            resolution = "success" if status == 0 else None
            recorder.record(
                Resolved.model_validate({"resolution": resolution, "source": "exit_status"})
            )
        if status == 0 or (desk.resolution is not None and status is not None and status > 0):
            recorder.record(JobEnded(status="completed"))
        else:
            reason = f"the program {_how(status)}"
            recorder.record(JobEnded(status="failed", reason=reason, fault="agent"))


async def _to_the_end(work: Coroutine[None, None, None]) -> None:
    """Wait for it whatever happens; a cancellation comes through afterwards."""
    doing = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not doing.done():
        try:
            await asyncio.wait({doing})
        except asyncio.CancelledError as error:
            cancelled = error
    doing.result()
    if cancelled is not None:
        raise cancelled


class _Aftermath:
    """What is said when the program is gone: its own report, and the ends of the tasks.

    Attributes:
        fault: why nothing more can be kept, if that is so.
    """

    def __init__(
        self,
        recorder: Recorder,
        gateway: Gateway,
        desk: TicketDesk,
        kept: KeptFiles,
        hosts: frozenset[str],
    ) -> None:
        self._recorder = recorder
        self._gateway = gateway
        self._desk = desk
        self._kept = kept
        self._hosts = hosts
        self.fault: OpsDrillError | None = None

    async def tell(self, status: TaskStatus, *, isolated: bool, looked_for: bool) -> None:
        """Close everything that still listens, then say it."""
        await self._desk.close()
        await self._gateway.close(status)
        self._kept.close()
        self.fault = self._gateway.fault or self._desk.fault
        if self.fault is not None:
            return
        account = (
            await asyncio.to_thread(read_account, self._kept.transcripts)
            if looked_for
            else "the agent leaves no transcript that is known"
        )
        coverage = self._coverage(account, isolated)
        self._recorder.record(Covered(coverage=coverage))
        if isinstance(account, Account):
            guarded = coverage.of("executed_commands").state == "whole"
            report_account(account, self._recorder, self._hosts, guarded=guarded)
        self._end_tasks(status)
        if self._desk.summary is not None:
            self._recorder.record(Posted(author="agent", body=self._desk.summary))

    def _coverage(self, account: Account | str, isolated: bool) -> Coverage:
        own = "what the agent did on its own machine is in its transcript only"
        base = Coverage(
            default=_SEEN,
            executed_commands=None if isolated else Seen(state="partial", why=_PAST),
            tool_calls=Seen(state="partial", why=own),
            task_description=_UNNAMED,
        )
        if isinstance(account, str):
            unseen = Seen(state="unavailable", why=account)
            base = base.model_copy(update={"use_mcp_tool": unseen, "agent_messages": unseen})
        else:
            base = base.model_copy(update=dict(account.seen))
        return self._gateway.coverage(base)

    def _end_tasks(self, status: TaskStatus) -> None:
        """Each ends with its last command, so that turns can be told from the times."""
        stop_reason = None if status == "completed" else "stopped before its end"
        for task in self._recorder.job_record().tasks:
            ends = [call.ended_at for call in task.tool_calls if call.witness != "agent"]
            times = [at for at in (*ends, task.started_at) if at is not None]
            self._recorder.record(
                TaskEnded(
                    task=task.id,
                    status=status,
                    stop_reason=stop_reason,
                    summary=self._desk.summaries.get(task.host),
                    at=max(times) if times else None,
                )
            )


def _how(status: int | None) -> str:
    if status is None:
        return "was ended, and nobody knows how"
    if status > 0:
        return f"ended with exit status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = str(-status)
    return f"was ended by the signal {name}"


@contextmanager
def _folders(keep: Path | None) -> Iterator[_Place]:
    with tempfile.TemporaryDirectory(prefix="opsdrill-agent-", ignore_cleanup_errors=True) as made:
        base = Path(made)
        for name in ("keys", "plain", "kept"):
            (base / name).mkdir(mode=0o700)
        kept = base / "kept"
        if keep is not None:
            # What an earlier attempt at the same run left says nothing of this one.
            shutil.rmtree(keep, ignore_errors=True)
            kept = keep
        yield _Place(kept, base / "keys", base / "plain")
