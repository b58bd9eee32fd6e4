"""Exports of OpenTelemetry spans, fact by fact."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from pydantic import JsonValue
from tests.unit.evidence.importers.in_memory import (
    Row,
    calls_of,
    commands_of,
    golden,
    job_of,
    knows,
    lines,
    read,
    state_of,
    status_of,
    task_of,
)

from opsdrill.errors import InvalidInput
from opsdrill.evidence.importers.otel import importer as otel

FORMAT = "otel"
AGENTS = golden(FORMAT, "agents.json")
ADK = golden(FORMAT, "adk.json")
PHOENIX = golden(FORMAT, "phoenix.jsonl")
BASE = 1_767_225_600_000_000_000


def span(id: str, parent: str = "", at: int = 0, took: int = 1, **more: JsonValue) -> Row:
    """A span of OTLP; more: its attributes, `__` for a dot."""
    return made(id, parent, at, took, more)


def made(id: str, parent: str, at: int, took: int, more: Row) -> Row:
    given: Row = {key.replace("__", "."): value for key, value in more.items()}
    error = given.pop("error", None)
    return {
        "traceId": given.pop("trace", "t1"),
        "spanId": id,
        "parentSpanId": parent,
        "name": given.pop("name", "span"),
        "startTimeUnixNano": str(BASE + at * 10**9),
        "endTimeUnixNano": str(BASE + (at + took) * 10**9),
        "attributes": [{"key": key, "value": _value(value)} for key, value in given.items()],
        "events": given.pop("events", []),
        "status": {"code": 2, "message": error} if error else {},
    }


def _value(value: JsonValue) -> JsonValue:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(each) for each in value]}}
    return {"stringValue": value if isinstance(value, str) else json.dumps(value)}


def agent(id: str = "a", parent: str = "", at: int = 0, took: int = 99, **more: JsonValue) -> Row:
    base: Row = {"gen_ai__operation__name": "invoke_agent", "gen_ai__agent__name": "ops"}
    return made(id, parent, at, took, base | more)


def tool(
    id: str, parent: str = "a", at: int = 1, arguments: JsonValue = None, **more: JsonValue
) -> Row:
    base: Row = {
        "gen_ai__operation__name": "execute_tool",
        "gen_ai__tool__name": "bash",
        "gen_ai__tool__call__arguments": arguments or {"command": "uptime"},
    }
    return made(id, parent, at, 1, base | more)


def chat(
    id: str,
    parent: str = "a",
    at: int = 0,
    said: str = "",
    calls: JsonValue = None,
    asked: JsonValue = None,
    finish: str = "stop",
    **more: JsonValue,
) -> Row:
    parts: list[JsonValue] = [{"type": "text", "content": said}] if said else []
    parts += calls if isinstance(calls, list) else []
    base: Row = {"gen_ai__operation__name": "chat"}
    if parts:
        base["gen_ai__output__messages"] = [
            {"role": "assistant", "parts": parts, "finish_reason": finish}
        ]
    if isinstance(asked, str):
        base["gen_ai__input__messages"] = [
            {"role": "user", "parts": [{"type": "text", "content": asked}]}
        ]
    elif asked is not None:
        base["gen_ai__input__messages"] = asked
    return made(id, parent, at, 1, base | more)


def asks(id: str | None, name: str = "bash", **arguments: JsonValue) -> JsonValue:
    return {"type": "tool_call", "id": id, "name": name, "arguments": arguments}


def otlp(*spans: JsonValue, scopes: str = "scopeSpans", resources: str = "resourceSpans") -> bytes:
    return json.dumps({resources: [{"resource": {}, scopes: [{"spans": list(spans)}]}]}).encode()


def plain_attributes(row: Row) -> Row:
    found: Row = {}
    listed = row["attributes"]
    assert isinstance(listed, list)
    for each in listed:
        assert isinstance(each, dict) and isinstance(each["value"], dict)
        found[str(each["key"])] = next(iter(each["value"].values()))
    return found


def jaeger(*spans: Row) -> bytes:
    found: list[JsonValue] = []
    for each in spans:
        start = int(str(each["startTimeUnixNano"])) // 1000
        end = int(str(each["endTimeUnixNano"])) // 1000
        tags: list[JsonValue] = [
            {"key": key, "type": "string", "value": value}
            for key, value in plain_attributes(each).items()
        ]
        found.append(
            {
                "traceID": each["traceId"],
                "spanID": each["spanId"],
                "operationName": each["name"],
                "references": [
                    {"refType": "CHILD_OF", "traceID": "t1", "spanID": each["parentSpanId"]}
                ],
                "startTime": start,
                "duration": end - start,
                "tags": tags,
            }
        )
    return json.dumps({"data": [{"traceID": "t1", "spans": found, "processes": {}}]}).encode()


SIMPLE = (agent(), chat("m", asked="Mend it.", said="Done.", at=5), tool("x"))


def test_a_tool_span_is_a_call() -> None:
    """`execute_tool`: the arguments and the result are JSON texts, the times are its own."""
    more = tool("x", gen_ai__tool__call__result={"ok": 1}, gen_ai__tool__call__id="c1")
    job = job_of(FORMAT, otlp(agent(), more, chat("m", said="Done.", at=5)))
    [call] = calls_of(job)
    assert (call.id, call.kind, call.command, call.outcome) == ("c1", "shell", "uptime", "ran")
    assert call.output == '{"ok": 1}'
    assert (
        call.started_at is not None and call.started_at.isoformat() == "2026-01-01T00:00:01+00:00"
    )
    assert call.ended_at is not None and call.ended_at.isoformat() == "2026-01-01T00:00:02+00:00"


@pytest.mark.parametrize(
    "data",
    [
        otlp(*SIMPLE),
        otlp(*SIMPLE, scopes="instrumentationLibrarySpans"),
        otlp(*SIMPLE, resources="batches", scopes="instrumentationLibrarySpans"),
        otlp(*SIMPLE, resources="batches"),
        b'{"trace": ' + otlp(*SIMPLE) + b"}",
        otlp(*SIMPLE) + b"\n",
        b"".join(otlp(each) + b"\n" for each in SIMPLE),
        b"\xef\xbb\xbf" + b"\r\n".join(otlp(each) for each in SIMPLE) + b"\r\n",
        jaeger(*SIMPLE),
    ],
    ids=["otlp", "otlp old", "tempo", "tempo new", "wrapped", "one line", "lines", "bom", "jaeger"],
)
def test_all_containers_hold_the_same(data: bytes) -> None:
    """OTLP, as document or lines, Tempo's batches and Jaeger's data give one and the same job."""
    job = job_of(FORMAT, data)
    assert commands_of(job) == ["uptime"]
    assert status_of(job) == "completed"
    main = task_of(job)
    assert (main.description, main.summary, main.agent) == ("Mend it.", "Done.", "ops")
    assert main.tool_calls[0].started_at == datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert state_of(job, "executed_commands") == "whole"


@pytest.mark.parametrize("time", [BASE, str(BASE), float(BASE)], ids=["number", "text", "float"])
def test_times_are_texts_or_numbers(time: JsonValue) -> None:
    """`startTimeUnixNano` is a text in OTLP and a number in Tempo's files."""
    row = tool("x") | {"startTimeUnixNano": time}
    [call] = calls_of(job_of(FORMAT, otlp(agent(), row)))
    assert (
        call.started_at is not None and call.started_at.isoformat() == "2026-01-01T00:00:00+00:00"
    )


def test_a_span_without_an_end_has_not_returned() -> None:
    """An end of zero is no end: the call may still run."""
    job = job_of(FORMAT, otlp(agent(), tool("x") | {"endTimeUnixNano": "0"}))
    assert calls_of(job)[0].ended_at is None
    assert state_of(job, "executed_commands") == "partial"


def test_kinds_of_spans_do_not_matter() -> None:
    """`kind` may be a number or a word."""
    rows = (agent() | {"kind": 1}, tool("x") | {"kind": "SPAN_KIND_CLIENT"})
    assert commands_of(job_of(FORMAT, otlp(*rows))) == ["uptime"]


def test_noise_is_no_evidence_but_holds_spans_together() -> None:
    """Spans of HTTP and queues say nothing, but a tool's span may be in one."""
    noise = span("n", "a", http__request__method="POST", gen_ai__task__id="x")
    job = job_of(FORMAT, otlp(noise, tool("x", "n"), agent()))
    assert [call.tool for call in task_of(job).tool_calls] == ["bash"]


def test_a_trace_without_agents_and_tools_is_no_job() -> None:
    """Each trace with an agent or a tool is a job; a model that only answers is none."""
    rows = (
        tool("x", trace="t1"),
        chat("m", "", said="A title", trace="t2"),
        span("h", trace="t3", http__route="/"),
        agent(trace="t4"),
        chat("k", "", calls=[asks("c", command="id")], trace="t5"),
    )
    assert [job.name for job in read(FORMAT, otlp(*rows))] == ["t1", "t4", "t5"]
    with pytest.raises(InvalidInput, match="no trace in which an agent or a tool"):
        read(FORMAT, otlp(chat("m", "", said="A title"), span("h")))


def test_an_all_zero_trace() -> None:
    """A trace id of zeros is none: the job has no id of its own."""
    job = job_of(FORMAT, otlp(tool("x", trace="0" * 32)))
    assert job.record.job is not None and job.record.job.id == "imported"


def test_adk_attributes() -> None:
    """ADK writes `tool_call_args` and `tool_response`, and `llm_request` and `llm_response`."""
    job = job_of(FORMAT, ADK)
    assert commands_of(job) == ["journalctl --vacuum-time=2d"]
    assert [message.text for message in task_of(job).messages] == [
        "I make room.",
        "3G are free again.",
    ]


def test_one_call_of_a_model_is_one_message() -> None:
    """Libraries nest their spans of the same call: its words and tokens count once."""
    inner = chat("n", "m", said="Done.", gen_ai__usage__input_tokens=5)
    innermost = span(
        "o",
        "n",
        gen_ai__completion__0__role="assistant",
        gen_ai__completion__0__content="Done.",
        gen_ai__usage__prompt_tokens=5,
    )
    outer = chat("m", gen_ai__usage__input_tokens=5, gen_ai__usage__output_tokens=2)
    job = job_of(FORMAT, otlp(agent(), inner, innermost, outer))
    main = task_of(job)
    assert [message.text for message in main.messages] == ["Done."]
    assert main.usage is not None and main.usage.input_tokens == 5


def test_calls_in_answers_and_in_spans_are_the_same() -> None:
    """A call has a span and stands in the model's answer: it counts once, by its id or by what."""
    answer = chat("m", calls=[asks("c1", command="id"), asks("c2", command="uptime")], at=0)
    by_id = tool("x", at=3, gen_ai__tool__call__id="c1", arguments={"command": "id"})
    by_what = tool("y", at=4)
    job = job_of(FORMAT, otlp(agent(), answer, by_id, by_what))
    assert [(call.id, call.command) for call in calls_of(job)] == [("c1", "id"), ("c2", "uptime")]


def test_arguments_that_only_the_answer_has() -> None:
    """What a tool was given is opt-in for spans: the model's answer may have it."""
    bare = span("x", "a", 2, gen_ai__operation__name="execute_tool", gen_ai__tool__name="bash")
    job = job_of(FORMAT, otlp(agent(), bare, chat("m", calls=[asks("c1", command="id")])))
    assert commands_of(job) == ["id"]
    job = job_of(FORMAT, otlp(agent(), bare))
    assert [call.kind for call in calls_of(job)] == ["other"]
    assert state_of(job, "executed_commands") == "partial"


def test_calls_that_have_no_span() -> None:
    """Without a tool's span the next question to the model holds the result."""
    result: JsonValue = {"type": "tool_call_response", "id": "c1", "response": "up 3 days"}
    first = chat("m", calls=[asks("c1", command="uptime")], asked="Mend it.", finish="tool_call")
    second = chat("n", at=3, said="Done.", asked=[{"role": "tool", "parts": [result]}])
    job = job_of(FORMAT, otlp(agent(), first, second))
    assert [(call.command, call.output) for call in calls_of(job)] == [("uptime", "up 3 days")]
    assert state_of(job, "executed_commands") == "whole"
    job = job_of(FORMAT, otlp(agent(), first))
    assert state_of(job, "executed_commands") == "partial"


def test_history_is_not_done_again() -> None:
    """A question repeats what was done before, in earlier traces too: that is not this job's."""
    asked: JsonValue = [
        {"role": "user", "parts": [{"type": "text", "content": "First."}]},
        {"role": "assistant", "parts": [asks("old", command="rm -rf /")]},
        {"role": "user", "parts": [{"type": "text", "content": "Second."}]},
    ]
    job = job_of(FORMAT, otlp(agent(), chat("m", asked=asked, said="Done.")))
    assert commands_of(job) == []
    assert task_of(job).description == "Second."


def test_old_conventions_are_events() -> None:
    """Before 1.37 messages were events: `gen_ai.user.message`, `gen_ai.choice`."""
    row = span("m", "a", gen_ai__system="openai", gen_ai__operation__name="chat")
    row["events"] = [
        {
            "name": "gen_ai.user.message",
            "attributes": [{"key": "content", "value": {"stringValue": "Mend it."}}],
        },
        {
            "name": "gen_ai.choice",
            "attributes": [
                {"key": "finish_reason", "value": {"stringValue": "stop"}},
                {
                    "key": "message",
                    "value": {"stringValue": '{"role": "assistant", "content": "Done."}'},
                },
            ],
        },
    ]
    job = job_of(FORMAT, otlp(agent(), row))
    assert (task_of(job).description, task_of(job).summary) == ("Mend it.", "Done.")


def test_openinference_keys_are_flattened() -> None:
    """`llm.input_messages.0.message.role` and so on; `openinference.span.kind` says what it is."""
    [job] = read(FORMAT, PHOENIX)
    assert [call.path for call in calls_of(job)] == ["/etc/motd"]
    assert (task_of(job).description, task_of(job).agent) == ("Set the motd of web-02.", "writer")


def test_vercel_attributes() -> None:
    """`ai.toolCall.args`, `ai.response.text`; `ai.streamText` is around all steps of an agent."""
    outer = span("a", took=9, ai__operationId="ai.streamText", ai__telemetry__functionId="ops")
    step = span(
        "m",
        "a",
        ai__operationId="ai.streamText.doStream",
        ai__response__finishReason="stop",
        ai__response__text="Done.",
        ai__prompt__messages=[{"role": "user", "content": [{"type": "text", "text": "Mend it."}]}],
    )
    call = span(
        "x",
        "a",
        ai__operationId="ai.toolCall",
        ai__toolCall__name="bash",
        ai__toolCall__id="c1",
        ai__toolCall__args={"command": "id"},
        ai__toolCall__result="root",
    )
    job = job_of(FORMAT, otlp(outer, step, call))
    assert commands_of(job) == ["id"]
    assert (task_of(job).description, task_of(job).summary) == ("Mend it.", "Done.")


def test_a_span_on_its_own() -> None:
    """One span without its trace is read; that the rest is missing is known."""
    alone: Row = {
        "scopeName": "x",
        "spanName": "ai.streamText.doStream",
        "attributes": {
            "ai.operationId": "ai.streamText.doStream",
            "ai.response.text": "Done.",
            "gen_ai.response.finish_reasons": {"values": [{"stringValue": "stop"}]},
        },
    }
    job = job_of(FORMAT, json.dumps(alone).encode())
    assert (task_of(job).summary, status_of(job)) == ("Done.", "completed")
    assert state_of(job, "executed_commands") == "partial"


def test_where_a_tool_worked() -> None:
    """The host is what the agent's tool says, not where the agent's own process ran."""
    named = tool("x", arguments={"command": "id", "host": "db-01"})
    document: JsonValue = {
        "resourceSpans": [
            {
                "resource": {
                    "attributes": [{"key": "host.name", "value": {"stringValue": "runner"}}]
                },
                "scopeSpans": [
                    {
                        "spans": [
                            agent(),
                            named,
                            tool("y", at=2),
                            tool("z", at=3, host__name="db-02"),
                        ]
                    }
                ],
            }
        ]
    }
    job = job_of(FORMAT, json.dumps(document).encode())
    assert {task.host for task in job.record.tasks} == {"db-01", "web-01", "db-02"}


def test_another_agent_has_its_own_task() -> None:
    """Spans in another agent's span are that one's; its description is what it was asked."""
    rows = (
        agent(),
        chat("m", asked="Mend it.", calls=[asks("c1", "ask", q="?")]),
        tool("x", gen_ai__tool__name="ask", gen_ai__tool__call__id="c1", arguments={"q": "?"}),
        agent("b", "x", 2, 5, gen_ai__agent__name="expert"),
        chat("n", "b", 2, asked="Why?", said="Because."),
        tool("y", "b", 3),
    )
    job = job_of(FORMAT, otlp(*rows))
    expert = task_of(job, "agent-b")
    assert [call.command for call in expert.tool_calls] == ["uptime"]
    assert (expert.agent, expert.description, expert.summary) == ("expert", "Why?", "Because.")
    assert [call.tool for call in task_of(job).tool_calls] == ["ask"]
    assert task_of(job).description == "Mend it."


def test_a_caller_around_the_agent_is_no_agent() -> None:
    """The caller's span and the agent's own are one agent, whatever they call it."""
    rows = (agent("a"), agent("b", "a", 1, 5, gen_ai__agent__name="helm_agent"), tool("x", "b", 2))
    job = job_of(FORMAT, otlp(*rows))
    assert [task.id for task in job.record.tasks] == ["main"]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"gen_ai__tool__type": "McpTool"}, ("mcp", None, "look")),
        ({"mcp__method__name": "tools/call", "mcp__server__name": "k8s"}, ("mcp", "k8s", "look")),
        ({"gen_ai__tool__name": "mcp__k8s__get"}, ("mcp", "k8s", "get")),
        ({"gen_ai__tool__type": "function"}, ("other", None, "look")),
    ],
)
def test_tools_of_servers(more: Row, expected: tuple[str, str | None, str]) -> None:
    """An MCP tool is one by its type, its attributes or its name."""
    base: Row = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": "look"}
    row = made("x", "a", 1, 1, base | {"gen_ai__tool__call__arguments": {"q": 1}} | more)
    [call] = calls_of(job_of(FORMAT, otlp(agent(), row)))
    assert (call.kind, call.server, call.tool) == expected


def test_a_span_around_a_call_is_the_call() -> None:
    """The client of an MCP server has a span of its own in the tool's: one call."""
    inner = span("y", "x", 1, name="tools/call look", mcp__method__name="tools/call",
                 gen_ai__tool__name="look", mcp__server__name="k8s")  # fmt: skip
    outer = tool("x", gen_ai__tool__name="look", arguments={"q": 1})
    [call] = calls_of(job_of(FORMAT, otlp(agent(), outer, inner)))
    assert (call.kind, call.server, call.arguments) == ("mcp", "k8s", {"q": 1})


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ("TimeoutError", "timed_out"),
        ("rejected by user", "refused"),
        ("ToolError", "failed"),
    ],
)
def test_what_errors_of_tools_mean(error: str, outcome: str) -> None:
    """The span's error says what became of the call."""
    [call] = calls_of(job_of(FORMAT, otlp(agent(), tool("x", error=error))))
    assert (call.outcome, call.output) == (outcome, error)


@pytest.mark.parametrize(
    ("rows", "status", "fault"),
    [
        ((agent(), tool("x")), "completed", None),
        ((agent(error="ConnectionError"), tool("x")), "failed", "infrastructure"),
        ((agent(error="Reached max turns"), tool("x")), "timed_out", "agent"),
        ((agent(error="CancelledError"), tool("x")), "cancelled", "operator"),
        ((tool("x", ""), chat("m", "", 5, said="Done.")), "completed", None),
        ((tool("x", ""), chat("m", "", 5, said="Do", finish="length")), "timed_out", "agent"),
        ((tool("x", ""), chat("m", "", 5, error="503")), "failed", "infrastructure"),
        ((tool("x", ""),), "failed", "infrastructure"),
        (
            (chat("m", "", 5, calls=[asks("c", command="id")], finish="tool_call"),),
            "failed",
            "infrastructure",
        ),
    ],
)
def test_how_a_trace_ends(rows: tuple[Row, ...], status: str, fault: str | None) -> None:
    """By the agent's span, else by the model's last answer; else nobody knows."""
    job = job_of(FORMAT, otlp(*rows))
    stop = job.record.stop
    assert (status_of(job), stop.fault if stop else None) == (status, fault)


def test_words_that_were_not_recorded() -> None:
    """Messages are opt-in: without them nobody knows what the agent said."""
    job = job_of(FORMAT, otlp(agent(), chat("m"), tool("x")))
    assert state_of(job, "agent_messages") == "unavailable"
    assert state_of(job, "executed_commands") == "whole"
    job = job_of(FORMAT, otlp(agent(), chat("m"), chat("n", said="Done.", at=3), tool("x")))
    assert state_of(job, "agent_messages") == "partial"


def test_calls_that_were_not_recorded() -> None:
    """A model that stopped to call tools of which there is no span: its commands are unknown."""
    row = chat("m", gen_ai__response__finish_reasons=["tool_calls"])
    assert state_of(job_of(FORMAT, otlp(agent(), row)), "executed_commands") == "partial"
    row = chat("m", gen_ai__response__finish_reasons=["stop"])
    assert state_of(job_of(FORMAT, otlp(agent(), row)), "executed_commands") == "whole"


def test_spans_that_were_sent_twice() -> None:
    """A span that is exported again counts once; another call under the same id is another."""
    assert commands_of(job_of(FORMAT, otlp(agent(), tool("x"), tool("x")))) == ["uptime"]
    same = (tool("x", gen_ai__tool__call__id="c"), tool("y", at=2, gen_ai__tool__call__id="c"))
    assert [call.id for call in calls_of(job_of(FORMAT, otlp(agent(), *same)))] == ["c", "c#2"]


def test_spans_may_stand_in_any_order() -> None:
    """Spans are exported as they end: a job is told in the order in which they began."""
    rows = [tool("x", at=3, arguments={"command": "b"}), tool("y", at=1), agent()]
    assert commands_of(job_of(FORMAT, otlp(*rows))) == ["uptime", "b"]


def test_spans_in_a_circle() -> None:
    """Parents that go round in a circle are followed once."""
    other = tool("y", "x", at=2, arguments={"command": "id"})
    rows = (tool("x", "y"), other, span("n", "n"), agent("p", "q"), agent("q", "p"))
    assert len(calls_of(job_of(FORMAT, otlp(*rows)))) == 2


def test_many_traces_are_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with more than is held at once is read again: the jobs are the same."""
    rows = [
        each
        for number in range(20)
        for each in (
            tool("x", "", arguments={"command": f"echo {number}"}, trace=f"t{number}"),
            span("n", trace=f"t{number}"),
        )
    ]
    data = b"".join(otlp(each) + b"\n" for each in (*rows[::2], *rows[1::2]))
    whole = read(FORMAT, data)
    monkeypatch.setattr(otel, "HELD", 5000)
    parts = read(FORMAT, data)
    assert [job.record for job in parts] == [job.record for job in whole]
    assert [commands_of(job) for job in parts] == [[f"echo {number}"] for number in range(20)]


def test_a_line_that_cannot_be_read() -> None:
    """A broken line may have held a span of any trace."""
    data = otlp(tool("x", "")) + b"\n{broken\n" + otlp(agent(trace="t2")) + b"\n"
    assert [state_of(job, "executed_commands") for job in read(FORMAT, data)] == ["partial"] * 2


def test_what_is_no_export() -> None:
    """Files without spans are not known."""
    for data in (b"", b"{}", b'{"data": []}', lines({"resourceSpans": 1}), b'{"spans": [1]}'):
        assert not knows(FORMAT, data)
