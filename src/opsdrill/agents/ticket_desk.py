"""The ticket of a job, where the agent reads it and reports to it: over HTTP, on loopback only.

    GET  URL              the ticket, its hosts, the rules for the agent, as JSON
    POST URL/messages     {"body": TEXT, "name": TEXT?}          a message to the requester
    PUT  URL/plan         {"plan": TEXT}
    PUT  URL/summary      {"summary": TEXT, "host": NAME?}       of a host, or of the whole job
    PUT  URL/resolution   {"resolution": WORD, "reasoning": TEXT?}

Every request has `Authorization: Bearer TOKEN`. An answer is JSON; one that is no 2xx has `error`.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Annotated, Self, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from opsdrill.agents.task import Reports
from opsdrill.errors import OpsDrillError
from opsdrill.evidence.cut import cut
from opsdrill.model.event import Planned, Posted, Resolved
from opsdrill.model.rules import Resolution
from opsdrill.model.ticket import Ticket, TicketMessage

ADDRESS = "127.0.0.1"
HEAD = 16 * 1024
"""Bytes of a request's head."""
BODY = 1024 * 1024
"""Bytes of a request's body."""
POSTED = 4 * 1024 * 1024
"""Characters of all that one job may say here."""
SAID = 1000
"""How often one job may say something here."""
CONNECTIONS = 64
SECONDS = 30.0
"""In which a request has to be there."""

_REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    405: "Method Not Allowed",
    409: "Conflict",
    413: "Content Too Large",
    429: "Too Many Requests",
    503: "Service Unavailable",
}

T = TypeVar("T", bound=BaseModel)


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class MessageBody(_Body):
    body: Annotated[str, Field(min_length=1)]
    name: Annotated[str, Field(max_length=200)] | None = None


class PlanBody(_Body):
    plan: Annotated[str, Field(min_length=1)]


class SummaryBody(_Body):
    summary: Annotated[str, Field(min_length=1)]
    host: str | None = None


class ResolutionBody(_Body):
    resolution: Resolution
    reasoning: str | None = None


class Refused(Exception):
    """A request that is not done.

    Args:
        status: of HTTP.
        why: for who asked.
    """

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    path: str
    token: str
    body: bytes


class TicketDesk:
    """Takes what the agent says about its ticket, from `async with` on.

    Args:
        ticket: title and body.
        hosts: the names of the hosts.
        operational_rules: what the agent has to keep to.
        reports: where events go; the job must have been reported before.

    Attributes:
        token: lets in.
        resolution: what the agent said last of how the job is resolved.
        summaries: what it said of its work on each host.
        summary: what it said of the whole.
        fault: why nothing more is taken: an event could not be kept.
    """

    def __init__(
        self,
        ticket: Ticket,
        hosts: tuple[str, ...],
        operational_rules: tuple[str, ...],
        reports: Reports,
    ) -> None:
        self.token = secrets.token_urlsafe(32)
        self.resolution: Resolved | None = None
        self.summaries: dict[str, str] = {}
        self.summary: str | None = None
        self.fault: OpsDrillError | None = None
        self._ticket = ticket
        self._messages: list[TicketMessage] = list(ticket.messages)
        self._hosts = hosts
        self._rules = operational_rules
        self._reports = reports
        self._said = self._posted = 0
        self._server: asyncio.Server | None = None
        self._talks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._talk, ADDRESS, 0, limit=HEAD)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def url(self) -> str:
        """The ticket's address."""
        assert self._server is not None
        return f"http://{ADDRESS}:{self._server.sockets[0].getsockname()[1]}/ticket"

    async def close(self) -> None:
        """Take nothing more. Repeatable."""
        if self._server is not None:
            self._server.close()
        for talk in tuple(self._talks):
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.current_task()
        assert talk is not None
        self._talks.add(talk)
        try:
            async with asyncio.timeout(SECONDS):
                await self._answer(reader, writer, len(self._talks) > CONNECTIONS)
        except (TimeoutError, ConnectionError):
            pass
        finally:
            self._talks.discard(talk)
            writer.close()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, crowded: bool
    ) -> None:
        status, answer = 200, b"{}"
        try:
            if crowded:
                raise Refused(429, "too many requests at the same time")
            answer = self._do(await _read(reader))
        except Refused as refused:
            status, answer = refused.status, _json({"error": refused.why})
        head = (
            f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(answer)}\r\nConnection: close\r\n\r\n"
        )
        writer.write(head.encode() + answer)
        await writer.drain()
        with suppress(OSError):
            writer.write_eof()
        # What it still sends is taken, or it would be told of an error in place of the answer.
        left = BODY
        while left > 0 and (part := await reader.read(HEAD)):
            left -= len(part)

    def _do(self, request: _Request) -> bytes:
        if not secrets.compare_digest(request.token.encode(), self.token.encode()):
            raise Refused(401, "the token is missing or wrong: see OPSDRILL_TICKET_TOKEN")
        if self.fault is not None:
            raise Refused(503, "nothing can be kept any more")
        match request.method, request.path:
            case "GET", "/ticket":
                return self._show()
            case "POST", "/ticket/messages":
                self._post(_body(request, MessageBody))
            case "PUT", "/ticket/plan":
                self._plan(_body(request, PlanBody))
            case "PUT", "/ticket/summary":
                self._summarize(_body(request, SummaryBody))
            case "PUT", "/ticket/resolution":
                self._resolve(_body(request, ResolutionBody))
            case _, "/ticket" | "/ticket/messages" | "/ticket/plan" | "/ticket/summary" | (
                "/ticket/resolution"
            ):
                raise Refused(405, "that cannot be done there")
            case _:
                raise Refused(404, "there is only /ticket, and what is below it")
        return b"{}"

    def _show(self) -> bytes:
        ticket = self._ticket.model_copy(update={"messages": tuple(self._messages)})
        shown = ticket.model_dump(mode="json")
        return _json({**shown, "hosts": self._hosts, "operational_rules": self._rules})

    def _post(self, said: MessageBody) -> None:
        event = Posted(author="agent", body=said.body, name=said.name)
        self._report(event, len(said.body))
        self._messages.append(TicketMessage(author="agent", body=said.body, name=said.name))

    def _plan(self, said: PlanBody) -> None:
        self._report(Planned(plan=said.plan), len(said.plan))

    def _summarize(self, said: SummaryBody) -> None:
        if said.host is not None and said.host not in self._hosts:
            known = ", ".join(self._hosts)
            raise Refused(400, f"there is no host {cut(said.host, 80)!r}; the hosts are: {known}")
        self._count(len(said.summary))
        if said.host is None:
            self.summary = said.summary
        else:
            self.summaries[said.host] = said.summary

    def _resolve(self, said: ResolutionBody) -> None:
        event = Resolved(resolution=said.resolution, reasoning=said.reasoning)
        self._report(event, len(said.reasoning or ""))
        self.resolution = event

    def _report(self, event: Posted | Planned | Resolved, size: int) -> None:
        self._count(size)
        try:
            self._reports.record(event)
        except OpsDrillError as error:
            self.fault = error
            raise Refused(503, "nothing can be kept any more") from None

    def _count(self, size: int) -> None:
        if self._said >= SAID or self._posted + size > POSTED:
            raise Refused(429, "more was said about this ticket than is kept")
        self._said += 1
        self._posted += size


async def _read(reader: asyncio.StreamReader) -> _Request:
    """One request. What is no HTTP, or too much of it, is refused."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise Refused(413, f"the head of a request has at most {HEAD} bytes") from None
    except asyncio.IncompleteReadError:
        raise Refused(400, "that is no request of HTTP") from None
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise Refused(400, "that is no request of HTTP")
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        fields[name.strip().lower()] = value.strip()
    if "transfer-encoding" in fields:
        raise Refused(400, "say how long the body is with Content-Length")
    length = fields.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        raise Refused(400, "the Content-Length is no number")
    if len(length) > 9 or int(length) > BODY:
        raise Refused(413, f"a body has at most {BODY} bytes")
    try:
        body = await reader.readexactly(int(length))
    except asyncio.IncompleteReadError:
        raise Refused(400, "the body ends too soon") from None
    scheme, _, token = fields.get("authorization", "").partition(" ")
    return _Request(
        words[0], words[1].partition("?")[0], token if scheme.lower() == "bearer" else "", body
    )


def _body(request: _Request, kind: type[T]) -> T:
    try:
        return kind.model_validate_json(request.body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the body"
        hint = f" (one of {', '.join(get_args(Resolution))})" if where == "resolution" else ""
        raise Refused(400, f"{cut(where, 80)}: {cut(first['msg'], 300)}{hint}") from None


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=True).encode()
