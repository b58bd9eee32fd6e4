"""One job of a service: start it, take its events until it has ended, cancel it when told to."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Coroutine
from contextlib import closing

from opsdrill.agents.adapter import Assignment
from opsdrill.agents.deny import DenyList
from opsdrill.agents.http import protocol
from opsdrill.agents.http.callbacks import CallBacks
from opsdrill.agents.http.client import (
    POLL_SECONDS,
    ProtocolBroken,
    Service,
    ServiceRefused,
    ServiceSilent,
)
from opsdrill.agents.http.intake import Intake
from opsdrill.agents.http.protocol import (
    EVENTS_LIMIT,
    CallBack,
    JobOrder,
    Result,
    ServiceEvent,
    Ticket,
    TicketMessage,
)
from opsdrill.errors import AgentUnavailable
from opsdrill.evidence.recorder import Recorder
from opsdrill.model.event import JobCreated, JobEnded

PAUSE_SECONDS = 0.25
"""Between two polls of a service that answers at once though it has nothing to tell."""


class HttpJob:
    """Drives a service through one job.

    Args:
        service: the service.
        assignment: what the agent is given.
        recorder: where its events go.
        deny: patterns of commands that are refused.
        callback: where to listen for call-backs, `ADDRESS:PORT`; None: events are polled.
        key: signs call-backs; there where `callback` is.
    """

    def __init__(
        self,
        service: Service,
        assignment: Assignment,
        recorder: Recorder,
        *,
        deny: tuple[str, ...] = (),
        callback: str | None = None,
        key: bytes | None = None,
    ) -> None:
        self._service = service
        self._given = assignment
        self._recorder = recorder
        self._patterns = deny
        self._callback = callback
        self._key = key
        self._job = uuid.uuid4().hex
        self._asked = False
        self._taken = 0
        self._started = asyncio.Event()
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def work(self) -> None:
        """Work the ticket to its end.

        Raises:
            AgentUnavailable: the service does not start the job.
        """
        with closing(DenyList(self._patterns)) as deny:
            self._intake = Intake(self._given, self._recorder, deny, self._answer)
            try:
                await self._worked()
            except (ServiceSilent, ServiceRefused, ProtocolBroken) as error:
                await self._intake.close()
                reason = _fault(error)
                self._recorder.record(JobEnded(status="failed", reason=reason, fault="agent"))
            finally:
                await self._intake.close()
                if self._asked and not self._intake.ended:
                    await self._service.cancel(self._job)

    async def _worked(self) -> None:
        if self._callback is None or self._key is None:
            await self._start(None)
            await self._until_failed(self._polled())
            return
        async with CallBacks(self._callback, self._key, self._posted) as listening:
            await self._start(listening.url)
            await self._until_failed(self._heard())

    async def _start(self, callback: str | None) -> None:
        self._asked = True
        try:
            await self._service.start(order(self._job, self._given, callback))
        except ServiceSilent as error:
            raise AgentUnavailable(f"the service does not start the job: {error}") from error
        except (ServiceRefused, ProtocolBroken) as error:
            raise AgentUnavailable(f"the service refuses the job: {error}") from error
        self._recorder.record(JobCreated(job="job-1"))
        self._started.set()

    async def _until_failed(self, events: Coroutine[None, None, None]) -> None:
        """Wait for the end of the events, or for a command whose result could not be given."""
        doing = asyncio.create_task(events)
        try:
            await asyncio.wait({doing, self._intake.failed}, return_when=asyncio.FIRST_COMPLETED)
            if not doing.done():
                self._intake.failed.result()
            await doing
        finally:
            doing.cancel()
            await asyncio.gather(doing, return_exceptions=True)

    async def _polled(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._intake.ended:
            asked = loop.time()
            events = (await self._service.events(self._job, self._taken)).events
            for event in events:
                await self._take(event)
                if isinstance(event, protocol.JobEnded):
                    return
            if not events and loop.time() - asked < POLL_SECONDS / 2:
                await asyncio.sleep(PAUSE_SECONDS)

    async def _heard(self) -> None:
        await self._over

    async def _posted(self, posted: CallBack) -> int:
        """Take what the service posted; events that are known already are passed over."""
        await self._started.wait()
        if posted.job != self._job:
            raise ProtocolBroken(f"the job is {self._job}")
        if posted.after > self._taken:
            raise ProtocolBroken(f"event {self._taken} comes next")
        if self._intake.ended:
            return self._taken
        try:
            for event in posted.events[self._taken - posted.after :]:
                await self._take(event)
        except ProtocolBroken as error:
            if not self._over.done():
                self._over.set_exception(error)
            raise
        return self._taken

    async def _take(self, event: ServiceEvent) -> None:
        if self._taken >= EVENTS_LIMIT:
            raise ProtocolBroken(f"a job may have {EVENTS_LIMIT} events")
        await self._intake.take(event)
        self._taken += 1
        if isinstance(event, protocol.JobEnded) and not self._over.done():
            self._over.set_result(None)

    async def _answer(self, result: Result) -> None:
        await self._service.result(self._job, result)


def order(job: str, given: Assignment, callback: str | None) -> JobOrder:
    """The job as it is posted."""
    ticket = given.ticket
    return JobOrder(
        format="opsdrill.agent/1",
        id=job,
        ticket=Ticket(
            title=ticket.title,
            body=ticket.body,
            messages=tuple(
                TicketMessage(author=message.author, body=message.body)
                for message in ticket.messages
            ),
        ),
        hosts=tuple(given.hosts),
        operational_rules=given.operational_rules,
        job_seconds=given.job_seconds,
        command_seconds=given.command_seconds,
        callback=callback,
    )


def _fault(error: Exception) -> str:
    """Why a job that had begun failed: a service that crashes is an agent that crashes."""
    if isinstance(error, ProtocolBroken):
        return f"the service broke the protocol: {error}"
    if isinstance(error, ServiceRefused):
        return f"the service refused to go on: {error}"
    return f"the service stopped answering: {error}"
