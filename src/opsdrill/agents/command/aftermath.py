"""What is said when a command agent's program is gone: its own report, and the ends of tasks."""

from __future__ import annotations

import asyncio

from opsdrill.agents.command.account import Account, read_account, report_account
from opsdrill.agents.command.kept import KeptFiles
from opsdrill.agents.gateway import Gateway
from opsdrill.agents.ticket_desk import TicketDesk
from opsdrill.errors import OpsDrillError
from opsdrill.evidence.recorder import Recorder
from opsdrill.model.event import Covered, Posted, TaskEnded
from opsdrill.model.job import Coverage, Seen, TaskStatus

_SEEN = Seen(state="whole", why="seen by the gateway in front of the hosts")
_UNNAMED = Seen(state="unavailable", why="the agent names no tasks: there is one for each host")
_PAST = "the agent was not isolated: it may have reached a host past the gateway"


class Aftermath:
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
            await asyncio.to_thread(read_account, self._kept.transcripts, self._kept.unread)
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
