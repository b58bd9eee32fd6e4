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
from opsdrill.agents.command.aftermath import Aftermath
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
from opsdrill.agents.deny import DenyList
from opsdrill.agents.gateway import Gateway
from opsdrill.agents.isolation.confined import Confined, Ending
from opsdrill.agents.isolation.probe import why_not_isolated
from opsdrill.agents.isolation.room import Room
from opsdrill.agents.ticket_desk import TicketDesk
from opsdrill.errors import AgentUnavailable
from opsdrill.evidence.recorder import Recorder
from opsdrill.model.event import (
    Isolated,
    JobCreated,
    JobEnded,
    JobEvent,
    Resolved,
    TaskCreated,
    TaskEnded,
)
from opsdrill.model.job import TaskStatus


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
        with (
            closing(DenyList(self._context.settings.deny)) as deny,
            _folders(self._context.keep) as place,
            closing(KeptFiles(place.kept, recorder.mask)) as kept,
        ):
            layout = Layout.isolated() if refused is None else Layout.plain(place.plain)
            words = ticket_words(
                ticket, tuple(hosts), assignment.operational_rules, assignment.users
            )
            gateway = Gateway(
                hosts,
                reports,
                agent=self._name,
                users=assignment.users,
                deny=deny if self._context.settings.deny else None,
                command_seconds=assignment.command_seconds,
                known_input=words.encode(errors="surrogateescape"),
            )
            after = Aftermath(recorder, gateway, desk, kept, frozenset(hosts))
            status: TaskStatus = "cancelled"
            async with desk, gateway:
                try:
                    room = self._room(assignment, words, layout, place, desk=desk, gateway=gateway)
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
        words: str,
        layout: Layout,
        place: _Place,
        *,
        desk: TicketDesk,
        gateway: Gateway,
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
        return room_for(
            self._program,
            path_of(self._program, context.folder or Path()),
            layout,
            links,
            words,
            hosts=tuple(assignment.hosts),
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
