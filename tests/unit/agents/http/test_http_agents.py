"""Agents that are services: the protocol, and services that break it, hang, lie or are hostile."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.integration.example_service import PROGRAM, example_service

from opsdrill.agents.adapter import AdapterContext, Assignment
from opsdrill.agents.adapters.http import HttpAdapter
from opsdrill.agents.http import job as job_room
from opsdrill.agents.http import openapi
from opsdrill.agents.http.client import Service, ServiceRefused
from opsdrill.agents.http.protocol import BODY_LIMIT
from opsdrill.agents.http.signing import FRESH_SECONDS, refusal, signed
from opsdrill.errors import AgentUnavailable, OpsDrillError, UsageError
from opsdrill.evidence.recorder import Recorder
from opsdrill.hosts.drivers.fake import FakeFleet, FakeHost
from opsdrill.hosts.drivers.fake_script import FakeAnswer, FakeScript, Scripted
from opsdrill.model.agent import AgentSettings
from opsdrill.model.event import JobEvent
from opsdrill.model.job import JobRecord
from opsdrill.model.secret import SecretSource
from opsdrill.model.ticket import Ticket, TicketMessage

TICKET = Ticket(
    title="The shop is down",
    body="Please mend it.",
    messages=(TicketMessage(author="requester", body="Hurry."),),
)
KEY = "shared secret"
OK = FakeScript(otherwise=Scripted(exit_code=3, stdout="out\n", stderr="err\n"))

Reply = tuple[int, Any]
GREETING = {"format": "opsdrill.agent/1", "name": "test", "model": "m"}


@dataclass
class Seen:
    method: str
    path: str
    fields: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def nothing(_seen: Seen) -> Reply | None:
    return None


@dataclass
class FakeService:
    """A service that tells its events one request after the other.

    `before` may answer a request in the place of the service.
    """

    events: list[dict[str, Any]]
    before: Callable[[Seen], Reply | None] = nothing
    seen: list[Seen] = field(default_factory=list)
    url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                line, *lines = head.strip().split("\r\n")
                fields = {k.lower(): v for k, _, v in (text.partition(": ") for text in lines)}
                body = await reader.readexactly(int(fields.get("content-length", "0")))
                method, path, _ = line.split(" ")
                seen = Seen(method, path, fields, body)
                self.seen.append(seen)
                status, content = self.before(seen) or self._answer(seen)
                raw = content if isinstance(content, bytes) else json.dumps(content).encode()
                more = "location: http://127.0.0.1:1/\r\n" if status == 302 else ""
                writer.write(
                    f"HTTP/1.1 {status} X\r\n{more}content-length: {len(raw)}\r\n\r\n".encode()
                    + raw
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _answer(self, seen: Seen) -> Reply:
        if "/events" in seen.path:
            after = int(seen.path.split("after=")[1].split("&")[0])
            return 200, {"events": self.events[after : after + 3]}
        return 200, GREETING

    def asked(self, method: str, path: str) -> list[Seen]:
        return [s for s in self.seen if s.method == method and path in s.path]


@asynccontextmanager
async def serving(service: FakeService) -> AsyncIterator[FakeService]:
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0)
    service.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/drill"
    try:
        yield service
    finally:
        server.close()
        await server.wait_closed()


class Kept:
    def __init__(self) -> None:
        self.events: list[JobEvent] = []

    def append(self, seq: int, event: JobEvent) -> None:
        self.events.append(event)


class Impatient(HttpAdapter):
    waits = (0.0, 0.0)


class Drill:
    def __init__(self, script: FakeScript = OK) -> None:
        self.kept = Kept()
        self.recorder = Recorder(self.kept, TICKET)
        self.fleet = FakeFleet([FakeHost(host, script) for host in ("web-01", "web-02")])
        self.given = Assignment(TICKET, self.fleet.hosts, ("Never reboot.",), 1800.0, 5.0)

    async def work(self, service: FakeService, settings: AgentSettings | None = None) -> JobRecord:
        context = AdapterContext(argument=service.url, settings=settings or AgentSettings())
        async with asyncio.timeout(30):
            await Impatient(context).work(self.given, self.recorder)
        return self.recorder.job_record()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_room, "PAUSE_SECONDS", 0.01)


def made(task: str = "t", host: str = "web-01") -> list[dict[str, Any]]:
    return [
        {"event": "task_created", "task": task, "host": host, "turn": 1},
        {"event": "task_started", "task": task},
    ]


def request(command: str = "uptime", call: str = "1", task: str = "t") -> dict[str, Any]:
    return {"event": "command_requested", "task": task, "call": call, "command": command}


END = {"event": "task_ended", "task": "t", "status": "completed", "stop_reason": "done"}
RESOLVED = {"event": "resolved", "resolution": "success", "reasoning": "It answers."}
OVER = {"event": "job_ended", "status": "completed"}
WHOLE = [*made(), request(), END, RESOLVED, OVER]


def ended(record: JobRecord) -> tuple[str, str, str | None]:
    assert record.job is not None
    stop = record.stop
    return record.job.status, stop.reason if stop else "", stop.fault if stop else None


async def test_the_order_holds_all_that_an_agent_may_know() -> None:
    async with serving(FakeService([OVER])) as service:
        await Drill().work(service)
    [posted] = service.asked("POST", "/drill/jobs")
    order = posted.json()
    assert order.pop("id")
    assert order == {
        "format": "opsdrill.agent/1",
        "ticket": {
            "title": "The shop is down",
            "body": "Please mend it.",
            "messages": [{"author": "requester", "body": "Hurry."}],
        },
        "hosts": ["web-01", "web-02"],
        "operational_rules": ["Never reboot."],
        "job_seconds": 1800.0,
        "command_seconds": 5.0,
    }


async def test_every_event_stands_in_the_record() -> None:
    usage = {"model": "m", "input_tokens": 7, "output_tokens": 1, "cost_usd": 1}
    own = {"event": "tool_called", "task": "t", "call": "1", "kind": "mcp", "tool": "close"}
    events = [
        {"event": "planned", "plan": "Mend."},
        {"event": "posted", "body": "On it.", "name": "Ada"},
        {**made()[0], "agent": "fixer", "description": "Mend.", "operational_rules": ["Never."]},
        made()[1],
        request(),
        {**own, "server": "tracker", "arguments": {"id": 7}},
        {"event": "tool_returned", "task": "t", "call": "1", "outcome": "ran", "output": "closed"},
        {"event": "said", "task": "t", "text": "Nothing yet."},
        {"event": "used", "task": "t", "usage": usage},
        {"event": "used", "usage": usage},
        {**END, "summary": "Mended."},
        RESOLVED,
        OVER,
    ]
    async with serving(FakeService(events)) as service:
        record = await Drill().work(service)
    assert ended(record) == ("completed", "", None)
    assert record.job is not None
    assert (record.job.plan, record.job.resolution) == ("Mend.", "success")
    assert record.job.usage == record.tasks[0].usage
    assert [(m.author, m.body) for m in record.ticket.messages][1:] == [("agent", "On it.")]
    [task] = record.tasks
    assert (task.agent, task.description, task.operational_rules) == ("fixer", "Mend.", ("Never.",))
    assert [m.text for m in task.messages] == ["Nothing yet."]
    shell, mcp = sorted(task.tool_calls, key=lambda call: call.kind == "mcp")
    assert (shell.command, shell.outcome, shell.exit_code) == ("uptime", "ran", 3)
    assert (mcp.server, mcp.tool, mcp.arguments) == ("tracker", "close", {"id": 7})


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (
            Scripted(exit_code=3, stdout="out\n", stderr="err\n"),
            {"outcome": "ran", "exit_code": 3, "stdout": "out\n", "stderr": "err\n"},
        ),
        (Scripted(timed_out=True), {"outcome": "timed_out"}),
        (Scripted(unreachable=True), {"outcome": "failed"}),
    ],
)
async def test_what_became_of_a_command_is_posted_back(
    answer: Scripted, result: dict[str, Any]
) -> None:
    async with serving(FakeService(WHOLE)) as service:
        await Drill(FakeScript(otherwise=answer)).work(service)
    [posted] = service.asked("POST", "/results")
    told = posted.json()
    assert {key: told.get(key) for key in ("task", "call", *result)} == {
        "task": "t",
        "call": "1",
        **result,
    }
    assert ("reason" in told) == (result["outcome"] != "ran")


async def test_commands_of_tasks_run_at_the_same_time() -> None:
    events = [*made("a"), *made("b", "web-02"), request(task="a"), request(task="b")]
    events += [{**END, "task": "a"}, {**END, "task": "b"}, OVER]
    slow = FakeScript(answers=(FakeAnswer(starts_with="", exit_code=0, delay=0.2),))
    async with serving(FakeService(events)) as service:
        drill = Drill(slow)
        await drill.work(service)
    kinds = [event.event for event in drill.kept.events if event.event.startswith("tool")]
    assert kinds == ["tool_called", "tool_called", "tool_returned", "tool_returned"]


async def test_refused_commands_never_run() -> None:
    async with serving(FakeService([*made(), request("REBOOT"), END, OVER])) as service:
        drill = Drill()
        record = await drill.work(service, AgentSettings(deny=(r"\breboot\b",)))
    assert record.tasks[0].tool_calls[0].outcome == "refused"
    assert not any(host.asked for host in drill.fleet.hosts.values())
    assert service.asked("POST", "/results")[0].json()["outcome"] == "refused"


BROKEN: dict[str, list[Any]] = {
    "an unknown event": [{"event": "rebooted"}],
    "no event": [7],
    "an unknown key": [{**OVER, "fault": "operator"}],
    "a fault of somebody else": [{"event": "job_ended", "status": "cancelled"}],
    "a time of its own": [{"event": "planned", "plan": "a", "at": "2020-01-01T00:00:00Z"}],
    "a witness of its own": [*made(), {"event": "tool_called", "task": "t", "call": "1",
                                       "kind": "other", "witness": "gateway"}],
    "a task twice": [*made(), *made()],
    "an unknown host": made(host="mail-01"),
    "a name with a slash": made(task="../t"),
    "an unknown task": [request()],
    "a task that has not started": [made()[0], request()],
    "a task that has ended": [*made(), END, request()],
    "an answer without a call": [*made(), {"event": "tool_returned", "task": "t", "call": "1",
                                           "outcome": "ran"}],
    "a shell call without a command": [*made(), {"event": "tool_called", "task": "t", "call": "1",
                                                 "kind": "shell"}],
    "a command with a NUL": [*made(), request("a\0b")],
    "an event after the end": [OVER, {"event": "planned", "plan": "a"}],
    "requester": [{"event": "posted", "body": "a", "author": "requester"}],
}  # fmt: skip


@pytest.mark.parametrize("why", [why for why in BROKEN if why != "an event after the end"])
async def test_a_service_that_breaks_the_protocol_has_failed(why: str) -> None:
    """That is the agent's fault; what it did before stays in the record."""
    async with serving(FakeService([{"event": "posted", "body": "Hello."}, *BROKEN[why]])) as one:
        record = await Drill().work(one)
    status, reason, fault = ended(record)
    assert (status, fault) == ("failed", "agent")
    assert reason.startswith("the service broke the protocol: ")
    assert "\n" not in reason
    assert len(reason) < 500
    assert all(task.status in ("cancelled", "completed") for task in record.tasks)
    assert one.asked("DELETE", "/drill/jobs/")


async def test_nothing_counts_after_the_end() -> None:
    async with serving(FakeService(BROKEN["an event after the end"])) as service:
        record = await Drill().work(service)
    assert record.job is not None
    assert (record.job.status, record.job.plan) == ("completed", None)


async def test_a_job_that_ends_with_open_tasks_and_calls_leaves_none_open() -> None:
    own = {"event": "tool_called", "task": "t", "call": "1", "kind": "other", "tool": "think"}
    async with serving(FakeService([*made(), own, OVER])) as service:
        record = await Drill().work(service)
    [task] = record.tasks
    assert (task.status, task.tool_calls[0].outcome) == ("cancelled", "failed")


async def test_a_service_that_gives_up_has_failed() -> None:
    over = {"event": "job_ended", "status": "failed", "reason": "no idea"}
    async with serving(FakeService([over])) as service:
        assert ended(await Drill().work(service)) == ("failed", "no idea", "agent")


@pytest.mark.parametrize("status", [429, 500, 502, 503])
async def test_refusals_that_pass_are_tried_again(status: int) -> None:
    asked: Counter[str] = Counter()

    def before(seen: Seen) -> Reply | None:
        asked[seen.path] += 1
        return (status, "later") if asked[seen.path] < 3 else None

    async with serving(FakeService(WHOLE, before)) as service:
        record = await Drill().work(service)
    assert ended(record) == ("completed", "", None)
    orders = [posted.json()["id"] for posted in service.asked("POST", "/drill/jobs")[:3]]
    assert len(set(orders)) == 1


def only(path: str, reply: Reply) -> Callable[[Seen], Reply | None]:
    return lambda seen: reply if seen.path.partition("?")[0].endswith(path) else None


@pytest.mark.parametrize(
    "reply",
    [(401, "no"), (404, "no"), (503, "no"), (302, "no")],
    ids=lambda reply: str(reply[0]),
)
async def test_a_service_that_does_not_start_is_no_fault_of_the_agent(reply: Reply) -> None:
    async with serving(FakeService(WHOLE, only("/jobs", reply))) as service:
        with pytest.raises(AgentUnavailable, match=str(reply[0])) as caught:
            await Drill().work(service)
    assert caught.value.fault == "operator"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ((503, "no"), "the service stopped answering: status 503, in 3 tries"),
        ((404, "gone"), 'the service refused to go on: status 404: "gone"'),
        ((302, ""), "the service refused to go on: status 302"),
        ((200, b"{"), "the service broke the protocol"),
        ((200, {"events": {}}), "the service broke the protocol: events"),
        ((200, b" " * (BODY_LIMIT + 1)), f"an answer has more than {BODY_LIMIT} bytes"),
        ((200, b"[" * 100_000), "the service broke the protocol"),
    ],
)
@pytest.mark.parametrize("path", ["/events"])
async def test_a_service_that_crashes_later_has_failed(path: str, reply: Reply, said: str) -> None:
    async with serving(FakeService(WHOLE, only(path, reply))) as service:
        status, reason, fault = ended(await Drill().work(service))
    assert (status, fault) == ("failed", "agent")
    assert said in reason


async def test_a_service_that_refuses_results_has_failed() -> None:
    async with serving(FakeService(WHOLE[:-3], only("/results", (500, "")))) as service:
        status, reason, fault = ended(await Drill().work(service))
    assert (status, fault) == ("failed", "agent")
    assert "status 500" in reason


async def test_a_service_that_is_not_there(tmp_path: Path) -> None:
    adapter = Impatient(AdapterContext(argument="http://127.0.0.1:9"))
    with pytest.raises(AgentUnavailable, match="cannot be used: ConnectError"):
        await adapter.preflight(("web-01",))
    with pytest.raises(AgentUnavailable, match="does not start the job"):
        await adapter.work(Drill().given, Drill().recorder)


@pytest.mark.parametrize("reply", [(200, {"format": "other/1"}), (200, b"<html>"), (404, "")])
async def test_preflight_finds_what_is_no_service(reply: Reply) -> None:
    async with serving(FakeService([], lambda _seen: reply)) as service:
        with pytest.raises(AgentUnavailable):
            await Impatient(AdapterContext(argument=service.url)).preflight(())
    async with serving(FakeService([])) as service:
        adapter = Impatient(AdapterContext(argument=service.url))
        await adapter.preflight(())
        assert await adapter.hello() == "the service test, the model m"


async def test_redirects_are_not_followed_and_proxies_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a service answers sends OpsDrill nowhere else."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with (
        serving(FakeService([], lambda _seen: (302, ""))) as one,
        Service(one.url, waits=()) as service,
    ):
        with pytest.raises(ServiceRefused, match="302"):
            await service.greet()
    assert len(one.seen) == 1


@pytest.mark.parametrize(
    "argument",
    [
        None, "", "127.0.0.1:80", "ftp://host", "file:///etc/passwd", "http://", "http:///path",
        "http://user:secret@host", "http://host/?a=1", "http://host/#a", "http://host:99999",
        "http://host name", "http://host\r\nx: y", "http://[::1", "http://höst",
    ],
)  # fmt: skip
def test_an_argument_that_is_no_address(argument: str | None) -> None:
    with pytest.raises(UsageError) as caught:
        HttpAdapter(AdapterContext(argument=argument))
    assert "secret" not in str(caught.value)


@given(st.text(max_size=40))
def test_any_argument_is_an_address_or_a_usage_error(text: str) -> None:
    for argument in (text, f"http://{text}"):
        try:
            HttpAdapter(AdapterContext(argument=argument))
        except OpsDrillError as error:
            assert isinstance(error, UsageError)


async def test_requests_carry_the_token_and_a_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRILL_TOKEN", "token")
    monkeypatch.setenv("DRILL_KEY", KEY)
    settings = AgentSettings(
        token=SecretSource(env="DRILL_TOKEN"), signing_key=SecretSource(env="DRILL_KEY")
    )
    async with serving(FakeService(WHOLE)) as service:
        await Drill().work(service, settings)
    for seen in service.seen:
        assert seen.fields["authorization"] == "Bearer token"
        assert refusal(KEY.encode(), seen.fields, seen.body, time.time()) is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, None),
        ({"opsdrill-signature": "v1=00"}, "does not fit"),
        ({"opsdrill-signature": "é"}, "does not fit"),
        ({"opsdrill-timestamp": "1000001"}, "does not fit"),
        ({"opsdrill-timestamp": "soon"}, "there is no"),
        ({"opsdrill-timestamp": "٣"}, "there is no"),
    ],
)
def test_a_signature_covers_the_moment_and_the_body(
    change: dict[str, str], said: str | None
) -> None:
    fields = {**signed(b"k", 1_000_000, b"body"), **change}
    why = refusal(b"k", fields, b"body", 1_000_000.0)
    assert (why is None) if said is None else (why is not None and said in why)
    assert refusal(b"k", fields, b"other", 1_000_000.0) is not None
    assert refusal(b"other", fields, b"body", 1_000_000.0) is not None


def test_a_signature_is_good_for_a_while_only() -> None:
    fields = signed(b"k", 1_000_000, b"body")
    for now in (1_000_000 + FRESH_SECONDS + 1, 1_000_000 - FRESH_SECONDS - 1):
        why = refusal(b"k", fields, b"body", now)
        assert why is not None
        assert "not of the last" in why


@contextmanager
def called_back(monkeypatch: pytest.MonkeyPatch) -> Iterator[AgentSettings]:
    monkeypatch.setenv("DRILL_KEY", KEY)
    yield AgentSettings(callback="127.0.0.1:0", signing_key=SecretSource(env="DRILL_KEY"))


async def post(url: str, content: Any, key: str = KEY, moment: float | None = None) -> Reply:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    headers = signed(key.encode(), int(time.time() if moment is None else moment), body)
    async with httpx.AsyncClient(trust_env=False) as client:
        reply = await client.post(url, content=body, headers=headers)
        return reply.status_code, reply.text


async def working(
    drill: Drill, service: FakeService, settings: AgentSettings
) -> tuple[asyncio.Task[JobRecord], str, str]:
    """A job under way: its task, its id, and where it is called back."""
    doing = asyncio.create_task(drill.work(service, settings))
    async with asyncio.timeout(10):
        while not drill.kept.events:
            await asyncio.sleep(0.01)
    order = service.asked("POST", "/jobs")[0].json()
    return doing, order["id"], order["callback"]


async def test_events_may_be_called_back(monkeypatch: pytest.MonkeyPatch) -> None:
    with called_back(monkeypatch) as settings:
        async with serving(FakeService([])) as service:
            drill = Drill()
            doing, job, url = await working(drill, service, settings)
            for after, event in enumerate(WHOLE):
                posted = {"job": job, "after": after, "events": [event]}
                assert await post(url, posted) == (200, str(after + 1))
            record = await doing
    assert ended(record) == ("completed", "", None)
    assert not service.asked("GET", "/events")
    assert service.asked("POST", "/results")[0].json()["exit_code"] == 3


async def test_a_call_back_counts_once_and_only_when_it_is_meant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A replay within the time that a signature is good for is passed over."""
    with called_back(monkeypatch) as settings:
        async with serving(FakeService([])) as service:
            drill = Drill()
            doing, job, url = await working(drill, service, settings)
            said = {"job": job, "after": 0, "events": [{"event": "posted", "body": "Hello."}]}
            base = url.rpartition("/")[0]
            assert (await post(url, said, key="guessed"))[0] == 401
            assert (await post(url, said, moment=time.time() - 900))[0] == 401
            assert (await post(f"{base}/guessed", said))[0] == 404
            assert (await post(url, {**said, "after": 1}))[0] == 409
            assert (await post(url, {**said, "job": "other"}))[0] == 409
            assert (await post(url, b"{"))[0] == 422
            assert (await post(url, b" " * (BODY_LIMIT + 1)))[0] == 413
            async with httpx.AsyncClient(trust_env=False) as client:
                assert (await client.get(url)).status_code == 405
            for _ in range(3):
                assert await post(url, said) == (200, "1")
            assert not doing.done()
            assert await post(url, {"job": job, "after": 1, "events": [OVER]}) == (200, "2")
            record = await doing
    assert [m.body for m in record.ticket.messages] == ["Hurry.", "Hello."]
    with pytest.raises(httpx.ConnectError):
        await post(url, said)


async def test_a_wrong_event_that_is_called_back_fails_the_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with called_back(monkeypatch) as settings:
        async with serving(FakeService([])) as service:
            drill = Drill()
            doing, job, url = await working(drill, service, settings)
            assert (await post(url, {"job": job, "after": 0, "events": [request()]}))[0] == 409
            status, reason, fault = ended(await doing)
    assert (status, fault) == ("failed", "agent")
    assert "there is no task" in reason


async def test_what_is_no_request_does_not_disturb_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    with called_back(monkeypatch) as settings:
        async with serving(FakeService([])) as service:
            doing, job, url = await working(Drill(), service, settings)
            port = int(url.split(":")[2].split("/")[0])
            for raw in (b"", b"\0" * 100, b"GET", b"a" * 100_000, b"POST / HTTP/1.1\r\n\r\n"):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(raw)
                writer.write_eof()
                await asyncio.wait_for(reader.read(), 10)
                writer.close()
            idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(8)]
            assert (await post(url, {"job": job, "after": 0, "events": [OVER]}))[0] == 200
            assert ended(await doing) == ("completed", "", None)
            for _, writer in idle:
                writer.close()


def test_call_backs_need_a_key() -> None:
    with pytest.raises(UsageError, match="signing_key"):
        settings = AgentSettings(callback="127.0.0.1:0")
        HttpAdapter(AdapterContext(argument="http://127.0.0.1:1", settings=settings))


async def test_a_cancelled_job_is_cancelled_at_the_service() -> None:
    slow = FakeScript(answers=(FakeAnswer(starts_with="", exit_code=0, delay=60.0),))
    async with serving(FakeService(WHOLE[:3])) as service:
        drill = Drill(slow)
        doing = asyncio.create_task(drill.work(service))
        async with asyncio.timeout(10):
            while not any(event.event == "tool_called" for event in drill.kept.events):
                await asyncio.sleep(0.01)
            doing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await doing
    [task] = drill.recorder.job_record().tasks
    assert (task.status, task.tool_calls[0].outcome) == ("cancelled", "failed")
    assert [host.running for host in drill.fleet.hosts.values()] == [0, 0]
    assert len(service.asked("DELETE", "/drill/jobs/")) == 1


async def test_the_example_of_the_documentation_works() -> None:
    assert len(PROGRAM.read_text().splitlines()) <= 61  # a line of them says what it is
    with example_service() as url:
        adapter = HttpAdapter(AdapterContext(argument=f"{url}/"))
        await adapter.preflight(("web-01", "web-02"))
        drill = Drill()
        async with asyncio.timeout(30):
            await adapter.work(drill.given, drill.recorder)
    record = drill.recorder.job_record()
    assert ended(record) == ("completed", "", None)
    assert [(task.turn, task.host, task.summary) for task in record.tasks] == [
        (1, "web-01", "ran"),
        (2, "web-02", "ran"),
    ]
    assert [host.asked[0].run for host in drill.fleet.hosts.values()] == ["uptime"] * 2
    assert record.job is not None
    assert record.job.resolution == "no_action"


def test_the_openapi_document_holds_together() -> None:
    """Every reference leads to a schema, every path to an operation."""
    text = json.dumps(openapi.document())
    document = json.loads(text)
    schemas = document["components"]["schemas"]
    names = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert names <= set(schemas)
    assert {"Greeting", "JobOrder", "Events", "CallBack", "Result"} <= set(schemas)
    assert set(document["paths"]) == {
        "/",
        "/jobs",
        "/jobs/{job}",
        "/jobs/{job}/events",
        "/jobs/{job}/results",
    }
