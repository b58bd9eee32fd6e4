"""The ticket over HTTP and by `opsdrill-ticket`: reading it, saying things, and what is refused."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opsdrill.agents import ticket_desk, ticket_program
from opsdrill.agents.ticket_desk import BODY, HEAD, SAID, TicketDesk
from opsdrill.errors import EventRefused, OpsDrillError
from opsdrill.model.event import JobEvent, Planned, Posted, Resolved
from opsdrill.model.ticket import Ticket

TICKET = Ticket(title="Shop down", body="All pages say 502.\n")


class Heard:
    """Keeps events; refuses them once it is `full`."""

    def __init__(self) -> None:
        self.events: list[JobEvent] = []
        self.full = False

    def record(self, event: JobEvent) -> None:
        if self.full:
            raise EventRefused(event.event, "the job has ended")
        self.events.append(event)


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
async def desk(heard: Heard) -> AsyncIterator[TicketDesk]:
    async with TicketDesk(TICKET, ("web-01", "db-01"), ("No reboots.",), heard) as desk:
        yield desk


async def raw(desk: TicketDesk, request: bytes, *, eof: bool = True) -> bytes:
    """What comes back on a connection of its own."""
    host, port = desk.url.removeprefix("http://").split("/")[0].split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(request)
        if eof:
            writer.write_eof()
        async with asyncio.timeout(10):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def ask(
    desk: TicketDesk, method: str, path: str, body: object = None, token: str | None = None
) -> tuple[int, dict[str, object]]:
    content = b"" if body is None else json.dumps(body).encode()
    bearer = desk.token if token is None else token
    head = f"{method} {path} HTTP/1.1\r\nAuthorization: Bearer {bearer}\r\n"
    head += f"Content-Length: {len(content)}\r\n\r\n"
    answer = await raw(desk, head.encode() + content)
    first, _, rest = answer.partition(b"\r\n")
    return int(first.split()[1]), json.loads(rest.partition(b"\r\n\r\n")[2])


async def program(desk: TicketDesk, *arguments: str, text: str = "") -> tuple[int, str, str]:
    """The small program, as an agent would call it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-IS",
        str(Path(ticket_program.__file__)),
        *arguments,
        env={"OPSDRILL_TICKET_URL": desk.url, "OPSDRILL_TICKET_TOKEN": desk.token},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate(text.encode())
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def test_the_ticket_is_read_with_its_hosts_and_rules(desk: TicketDesk) -> None:
    status, answer = await ask(desk, "GET", "/ticket")
    assert status == 200
    assert answer == {
        "title": "Shop down",
        "body": "All pages say 502.\n",
        "messages": [],
        "hosts": ["web-01", "db-01"],
        "operational_rules": ["No reboots."],
    }


async def test_what_the_agent_says_is_reported_and_shown(desk: TicketDesk, heard: Heard) -> None:
    assert (await ask(desk, "PUT", "/ticket/plan", {"plan": "look"}))[0] == 200
    said = {"body": "It is back.", "name": "helper"}
    assert (await ask(desk, "POST", "/ticket/messages", said))[0] == 200
    ending = {"resolution": "partial", "reasoning": "one page"}
    assert (await ask(desk, "PUT", "/ticket/resolution", ending))[0] == 200
    assert heard.events == [
        Planned(plan="look"),
        Posted(author="agent", body="It is back.", name="helper"),
        Resolved(resolution="partial", reasoning="one page"),
    ]
    assert desk.resolution == Resolved(resolution="partial", reasoning="one page")
    messages = (await ask(desk, "GET", "/ticket"))[1]["messages"]
    assert messages == [{"at": None, "author": "agent", "body": "It is back.", "name": "helper"}]


async def test_summaries_are_of_a_host_or_of_all(desk: TicketDesk) -> None:
    await ask(desk, "PUT", "/ticket/summary", {"summary": "nginx was down", "host": "web-01"})
    await ask(desk, "PUT", "/ticket/summary", {"summary": "all is well"})
    assert (desk.summaries, desk.summary) == ({"web-01": "nginx was down"}, "all is well")
    status, answer = await ask(desk, "PUT", "/ticket/summary", {"summary": "x", "host": "web-02"})
    assert status == 400 and "the hosts are: web-01, db-01" in str(answer["error"])


@pytest.mark.parametrize("token", ["", "wrong", "ä"])
async def test_nobody_without_the_token(desk: TicketDesk, heard: Heard, token: str) -> None:
    said = {"body": "x"}
    assert (await ask(desk, "POST", "/ticket/messages", said, token))[0] == 401
    assert (await ask(desk, "GET", "/ticket", None, token))[0] == 401
    assert heard.events == []


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/", None, 404),
        ("GET", "/ticket/../store.db", None, 404),
        ("DELETE", "/ticket", None, 405),
        ("POST", "/ticket/messages", {"body": ""}, 400),
        ("POST", "/ticket/messages", {"body": "x", "author": "requester"}, 400),
        ("POST", "/ticket/messages", ["x"], 400),
        ("PUT", "/ticket/resolution", {"resolution": "fine"}, 400),
        ("PUT", "/ticket/plan", {"plan": 1}, 400),
    ],
)
async def test_what_cannot_be_is_refused(
    desk: TicketDesk, heard: Heard, method: str, path: str, body: object, status: int
) -> None:
    assert (await ask(desk, method, path, body))[0] == status
    assert heard.events == []


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"", b"400"),
        (b"hello\r\n\r\n", b"400"),
        (b"GET /ticket HTTP/1.1\r\nX: " + b"a" * 2 * HEAD, b"413"),
        (b"PUT /ticket/plan HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (BODY + 1), b"413"),
        (b"PUT /ticket/plan HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"400"),
        (b"PUT /ticket/plan HTTP/1.1\r\nContent-Length: 9\r\n\r\nx", b"400"),
        (b"PUT /ticket/plan HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"400"),
    ],
)
async def test_malformed_requests_are_answered(
    desk: TicketDesk, request_: bytes, status: bytes
) -> None:
    assert (await raw(desk, request_)).split(b" ")[1] == status


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.binary(max_size=300))
def test_any_bytes_leave_it_standing(garbage: bytes) -> None:
    async def both() -> None:
        heard = Heard()
        async with TicketDesk(TICKET, ("web-01",), (), heard) as desk:
            await raw(desk, garbage)
            await raw(desk, b"PUT /ticket/plan HTTP/1.1\r\nAuthorization: Bearer " + garbage)
            assert (await ask(desk, "GET", "/ticket"))[0] == 200
            assert heard.events == []

    asyncio.run(both())


async def test_it_takes_no_more_than_is_kept(desk: TicketDesk, heard: Heard) -> None:
    body = {"plan": "x" * (BODY - 100)}
    answers = [(await ask(desk, "PUT", "/ticket/plan", body))[0] for _ in range(6)]
    assert answers == [200] * 4 + [429] * 2
    for _ in range(SAID):
        desk._said += 1
    assert (await ask(desk, "POST", "/ticket/messages", {"body": "x"}))[0] == 429
    assert len(heard.events) == 4


async def test_nothing_is_said_once_events_cannot_be_kept(desk: TicketDesk, heard: Heard) -> None:
    heard.full = True
    assert (await ask(desk, "POST", "/ticket/messages", {"body": "x"}))[0] == 503
    heard.full = False
    assert (await ask(desk, "POST", "/ticket/messages", {"body": "x"}))[0] == 503
    assert isinstance(desk.fault, OpsDrillError) and heard.events == []


async def test_silent_and_crowding_clients_are_let_go(
    desk: TicketDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ticket_desk, "SECONDS", 0.2)
    monkeypatch.setattr(ticket_desk, "CONNECTIONS", 2)
    silent = [asyncio.ensure_future(raw(desk, b"GET", eof=False)) for _ in range(2)]
    await asyncio.sleep(0.05)
    assert (await ask(desk, "GET", "/ticket"))[0] == 429
    assert await asyncio.gather(*silent) == [b"", b""]
    assert (await ask(desk, "GET", "/ticket"))[0] == 200


async def test_the_program_does_all_that(desk: TicketDesk, heard: Heard) -> None:
    status, out, _ = await program(desk)
    assert status == 0
    assert out == (
        "Shop down\n\nAll pages say 502.\n\nHosts:\n- web-01\n- db-01\n"
        "\nOperational rules:\n- No reboots.\n"
    )
    assert json.loads((await program(desk, "show", "--json"))[1])["hosts"] == ["web-01", "db-01"]
    assert await program(desk, "plan", "look", "first") == (0, "", "")
    assert await program(desk, "post", "-", text="é\ntwo lines\n") == (0, "", "")
    assert await program(desk, "summary", "--host", "web-01", "done") == (0, "", "")
    assert await program(desk, "resolve", "success", "it answers") == (0, "", "")
    assert heard.events == [
        Planned(plan="look first"),
        Posted(author="agent", body="é\ntwo lines\n"),
        Resolved(resolution="success", reasoning="it answers"),
    ]
    assert desk.summaries == {"web-01": "done"}


async def test_the_program_says_what_is_wrong(desk: TicketDesk) -> None:
    status, _, said = await program(desk, "resolve", "fine")
    assert status == 1 and "one of success, partial" in said
    for wrong in (("post",), ("dance",), ("summary", "--host"), ("show", "x")):
        status, _, said = await program(desk, *wrong)
        assert (status, said) == (2, ticket_program.USAGE)


def test_the_program_outside_of_a_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OPSDRILL_TICKET_URL", raising=False)
    assert ticket_program.main([]) == 1
    assert "only works where an agent runs" in capsys.readouterr().err
    assert "OPSDRILL_TICKET_URL" not in os.environ
