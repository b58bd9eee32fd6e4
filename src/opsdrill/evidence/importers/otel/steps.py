"""Spans that say what an agent did, cut down to that; all others are noise."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from opsdrill.evidence.importers.otel.messages import (
    Message,
    answers,
    finish_of,
    last_asked,
    parsed,
    plain,
    questions,
)
from opsdrill.evidence.importers.otel.spans import Span
from opsdrill.evidence.transcripts.rows import number, text, within

Role = Literal["agent", "model", "tool"]

_OPERATIONS: dict[object, Role] = {
    "execute_tool": "tool",
    "invoke_agent": "agent",
    "invoke_workflow": "agent",
    "chat": "model",
    "text_completion": "model",
    "generate_content": "model",
}
_KINDS: dict[object, Role] = {
    "agent": "agent",
    "workflow": "agent",
    "llm": "model",
    "tool": "tool",
}
_VERCEL: dict[object, Role] = {
    "ai.toolCall": "tool",
    "ai.generateText": "agent",
    "ai.streamText": "agent",
    "ai.generateText.doGenerate": "model",
    "ai.streamText.doStream": "model",
}
_ARGUMENTS = (
    "gen_ai.tool.call.arguments",
    "gcp.vertex.agent.tool_call_args",
    "ai.toolCall.args",
    "ai.toolCall.input",
    "tool_call.function.arguments",
    "input.value",
    "tool.parameters",
    "traceloop.entity.input",
)
_RESULTS = (
    "gen_ai.tool.call.result",
    "gcp.vertex.agent.tool_response",
    "ai.toolCall.result",
    "ai.toolCall.output",
    "output.value",
    "traceloop.entity.output",
)
_TOOLS = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "traceloop.entity.name")
_CALL_IDS = ("gen_ai.tool.call.id", "ai.toolCall.id", "tool_call.id", "tool.id")
_AGENTS = ("gen_ai.agent.name", "agent.name", "ai.telemetry.functionId", "traceloop.entity.name")
_MODELS = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "ai.model.id")
_USED = (
    ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt",
     "ai.usage.inputTokens", "ai.usage.promptTokens"),
    ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion",
     "ai.usage.outputTokens", "ai.usage.completionTokens"),
)  # fmt: skip
_MERGED = "(merged tools)"
"""ADK's span over several calls, each of which has its own."""
_NAMED = re.compile(r"(?:execute_tool|invoke_agent|agent_run|tools/call)\s+\[?(.+?)\]?")
_SERVERS = ("mcp.server.name", "gen_ai.mcp.server.name", "mcp.server")


@dataclass(slots=True)
class Step:
    """What one span says of an agent's work.

    Args:
        role: whose span it is.
        id: the span's.
        parent: the span that it is in.
        start: nanoseconds since 1970.
        end: likewise; None where it did not end.
        name: of the agent or the tool.
        answers: what the model said; of an agent, its last answer.
        asked: what users said since the model's last word.
        asked_last: what users said last at all.
        results: what tools gave back, as the model was told, by the call's id.
        finish: why the model stopped.
        call: the id of the tool's call.
        arguments: what the tool was given; None where that was not recorded.
        result: what it gave back.
        failed: what it gave back says that it failed.
        mcp: the tool is one of an MCP server.
        server: that server's name.
        host: where the tool worked, where it says so.
        model: that answered.
        used: tokens in and out.
        error: what went wrong.
    """

    role: Role
    id: str
    parent: str
    start: int
    end: int | None
    name: str | None = None
    answers: list[Message] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    asked_last: str | None = None
    results: dict[str, str] = field(default_factory=dict)
    finish: str | None = None
    call: str | None = None
    arguments: object = None
    result: str | None = None
    failed: bool = False
    mcp: bool = False
    server: str | None = None
    host: str | None = None
    model: str | None = None
    used: tuple[int | None, int | None] = (None, None)
    error: str | None = None


def role_of(span: Span) -> Role | None:
    """Whose span it is; None for noise."""
    given = span.attributes
    found = (
        _OPERATIONS.get(_key(given.get("gen_ai.operation.name")))
        or _KINDS.get(_lower(given.get("openinference.span.kind")))
        or _KINDS.get(_lower(given.get("traceloop.span.kind")))
        or _VERCEL.get(_key(given.get("ai.operationId")))
    )
    if found is None and "gen_ai.operation.name" not in given:
        found = _by_attributes(span)
    return None if found == "tool" and given.get("gen_ai.tool.name") == _MERGED else found


def _by_attributes(span: Span) -> Role | None:
    given = span.attributes
    if "gcp.vertex.agent.tool_call_args" in given or given.get("mcp.method.name") == "tools/call":
        return "tool"
    if span.name.startswith("execute_tool ") and "gen_ai.tool.name" in given:
        return "tool"
    if span.name.startswith(("invoke_agent ", "agent_run [")):
        return "agent"
    model = ("gcp.vertex.agent.llm_response", "gen_ai.prompt.0.role", "gen_ai.completion.0.role")
    if any(key in given for key in model) or given.get("llm.request.type") in (
        "chat",
        "completion",
    ):
        return "model"
    return None


def step_of(span: Span) -> Step | None:
    """What a span says of an agent's work; None for noise."""
    role = role_of(span)
    if role is None:
        return None
    step = Step(role, span.id, span.parent, span.start or 0, span.end, error=span.error)
    if role == "tool":
        _tool(step, span)
        return step
    asked = questions(span)
    step.asked, step.asked_last = last_asked(asked)
    step.answers = answers(span)
    given = span.attributes
    step.name = _first_text(given, _AGENTS)
    if role == "agent":
        step.name = step.name or _named(span)
        _plain_agent(step, span)
        return step
    step.results = {id: plain(value) for message in asked for id, value in message.results.items()}
    step.finish = next((each.finish for each in step.answers if each.finish), finish_of(span))
    step.model = _first_text(given, _MODELS)
    step.used = (_first_number(given, _USED[0]), _first_number(given, _USED[1]))
    return step


def _tool(step: Step, span: Span) -> None:
    given = span.attributes
    step.name = _first_text(given, _TOOLS) or _named(span) or span.name or "tool"
    step.call = _first_text(given, _CALL_IDS)
    step.arguments = parsed(next((given[key] for key in _ARGUMENTS if key in given), None))
    result = next((given[key] for key in _RESULTS if key in given), None)
    step.result = None if result is None else plain(result)
    step.failed = within(parsed(result), "isError") is True
    kind = _lower(given.get("gen_ai.tool.type"))
    step.mcp = "mcp" in kind or any(key.startswith("mcp.") for key in given)
    step.server = _first_text(given, _SERVERS)
    step.host = _first_text(given, ("host.name",))


def _plain_agent(step: Step, span: Span) -> None:
    """An agent whose request and answer are plain texts."""
    given = span.attributes
    for key in ("input.value", "ai.prompt", "traceloop.entity.input"):
        value = parsed(given.get(key))
        said = value if isinstance(value, str) else text(value, "prompt")
        if said and not step.asked:
            step.asked, step.asked_last = [said], said
    value = parsed(given.get("output.value"))
    if isinstance(value, str) and value and not step.answers:
        step.answers = [Message("assistant", value)]


def _named(span: Span) -> str | None:
    found = _NAMED.fullmatch(span.name)
    return found[1] if found else None


def _key(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _lower(value: object) -> str:
    return value.lower() if isinstance(value, str) else ""


def _first_text(given: Mapping[str, object], keys: tuple[str, ...]) -> str | None:
    return next((each for key in keys if isinstance(each := given.get(key), str) and each), None)


def _first_number(given: Mapping[str, object], keys: tuple[str, ...]) -> int | None:
    found = next((each for key in keys if (each := number(given.get(key))) is not None), None)
    return int(found) if found is not None and 0 <= found < 2**63 else None
