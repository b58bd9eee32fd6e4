"""What the gateway reports: one task for each host that is touched, and the calls in it."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from opsdrill.agents.gateway import bounds
from opsdrill.agents.task import Reports
from opsdrill.errors import OpsDrillError
from opsdrill.model.event import TaskCreated, TaskEnded, TaskStarted, ToolCalled, ToolReturned
from opsdrill.model.job import Coverage, Outcome, Seen, TaskStatus, ToolKind
from opsdrill.model.rules import Where

TOOL = "ssh"
_TOO_MUCH = "more was asked of the hosts than is recorded of one job"


class NotRecorded(Exception):
    """What is not in the record must not reach a host."""


class Call:
    """One call that was reported as begun; it is reported as returned once."""

    def __init__(self, witness: Witness, task: str, call: str) -> None:
        self._witness = witness
        self._task = task
        self._call = call
        self._open = True

    def returned(
        self, outcome: Outcome, *, exit_code: int | None = None, output: str | None = None
    ) -> None:
        """Report how it ended; what comes after the first time is not heard."""
        if not self._open:
            return
        self._open = False
        self._witness.report_returned(
            ToolReturned(
                task=self._task,
                call=self._call,
                outcome=outcome,
                exit_code=exit_code,
                output=output,
            )
        )


class Witness:
    """Reports what passes the gateway.

    Args:
        reports: where events go.
        agent: how the tasks call the agent.

    Attributes:
        fault: why nothing more is recorded, and so nothing more is passed on; None while all is.
        gaps: why a target is not seen whole.
    """

    def __init__(self, reports: Reports, agent: str | None = None) -> None:
        self._reports = reports
        self._agent = agent
        self._calls: dict[str, int] = {}
        self._left = bounds.RECORDED
        self._full = False
        self._over = False
        self.fault: OpsDrillError | None = None
        self.gaps: dict[Where, str] = {}

    @property
    def touched(self) -> tuple[str, ...]:
        """The hosts that were touched, in their order; each is the id of its task as well."""
        return tuple(self._calls)

    def begin(self, host: str, kind: ToolKind, tool: str, arguments: Mapping[str, str]) -> Call:
        """Report a call, before anything of it reaches the host.

        Raises:
            NotRecorded: it is not in the record.
        """
        if self._over or self._full or self.fault is not None:
            raise NotRecorded
        self._left -= sum(map(len, arguments.values()))
        if self._left < 0 or sum(self._calls.values()) >= bounds.CALLS:
            self._fill(host)
            raise NotRecorded
        return self._begin(host, kind, tool, arguments)

    def _begin(self, host: str, kind: ToolKind, tool: str, arguments: Mapping[str, str]) -> Call:
        try:
            if host not in self._calls:
                self._reports.record(TaskCreated(task=host, host=host, agent=self._agent))
                self._reports.record(TaskStarted(task=host))
                self._calls[host] = 0
            self._calls[host] += 1
            call = f"{host}.{self._calls[host]}"
            told: dict[str, JsonValue] = dict(arguments)
            self._reports.record(
                ToolCalled(
                    task=host, call=call, kind=kind, tool=tool, arguments=told, witness="gateway"
                )
            )
        except OpsDrillError as error:
            raise self.failed(error) from error
        return Call(self, host, call)

    def _fill(self, host: str) -> None:
        """No more is recorded of this job, nor passed on; a line typed before may run yet."""
        self._full = True
        self._begin(host, "other", TOOL, {"request": "more"}).returned("refused", output=_TOO_MUCH)
        self.gap(("executed_commands", "tool_calls", "write_file", "update_file"), _TOO_MUCH)

    def refuse(
        self, host: str, kind: ToolKind, tool: str, arguments: Mapping[str, str], why: str
    ) -> None:
        """Report a request that does not reach the host."""
        try:
            self.begin(host, kind, tool, arguments).returned("refused", output=why)
        except NotRecorded:
            return

    def report_returned(self, event: ToolReturned) -> None:
        """For `Call`: what cannot be kept ends all recording."""
        self._report(event)

    def failed(self, error: OpsDrillError) -> NotRecorded:
        """Nothing more is recorded, nor passed on; what is to be raised."""
        self.fault = self.fault or error
        return NotRecorded()

    def gap(self, targets: tuple[Where, ...], why: str) -> None:
        """A target is seen in part only; the first reason stays."""
        for target in targets:
            self.gaps.setdefault(target, why)

    def coverage(self, coverage: Coverage) -> Coverage:
        """What a record covers, with what this witness could not see; nothing gets better."""
        worse: dict[str, Seen] = {
            target: Seen(state="partial", why=why)
            for target, why in self.gaps.items()
            if coverage.of(target).state == "whole"
        }
        return coverage.model_copy(update=worse)

    def end(self, status: TaskStatus, stop_reason: str | None = None) -> None:
        """Report that the tasks ended; nothing is recorded after that. Repeatable."""
        if self._over:
            return
        self._over = True
        for task in self._calls:
            self._report(TaskEnded(task=task, status=status, stop_reason=stop_reason))

    def _report(self, event: ToolReturned | TaskEnded) -> None:
        if self.fault is not None:
            return
        try:
            self._reports.record(event)
        except OpsDrillError as error:
            self.fault = error
