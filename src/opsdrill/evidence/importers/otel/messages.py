"""What models were told and answered, in the attributes of a span: all conventions, one form.

OpenTelemetry's GenAI conventions (`gen_ai.*.messages`; before 1.37 events and numbered keys),
Google ADK (`gcp.vertex.agent.*`), OpenInference (numbered keys below `llm.`) and Vercel's AI SDK
(`ai.*`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from opsdrill.evidence.importers.otel.spans import Span
from opsdrill.evidence.transcripts.rows import listing, mapping, row, text, within

_PLACES = 10_000
"""The highest place in a list that is written as numbered keys."""
_CALLS = ("tool_call", "tool_use", "tool-call", "function_call", "server_tool_call")
_RESULTS = ("tool_call_response", "tool_result", "tool-result", "function_response")


@dataclass(frozen=True, slots=True)
class Asked:
    """One call of a tool, as a model asked for it."""

    id: str | None
    name: str
    arguments: object


@dataclass(slots=True)
class Message:
    """One message.

    Args:
        role: `user`, `assistant`, `system` or `tool`.
        text: what it says.
        calls: the tools that it calls.
        results: what tools gave back, by the call's id.
        finish: why the model stopped, in the transcript's word.
    """

    role: str
    text: str = ""
    calls: list[Asked] = field(default_factory=list)
    results: dict[str, object] = field(default_factory=dict)
    finish: str | None = None


def answers(span: Span) -> list[Message]:
    """What the model answered; empty where that was not recorded."""
    given = span.attributes
    response = parsed(given.get("gcp.vertex.agent.llm_response"))
    ways = (
        lambda: _messages(given.get("gen_ai.output.messages")),
        lambda: [_message(within(response, "content"), finish=text(response, "finish_reason"))],
        lambda: _numbered(given, "gen_ai.completion"),
        lambda: _numbered(given, "llm.output_messages"),
        lambda: _vercel_answer(given),
        lambda: _event_answers(span),
    )
    found = _first(ways)
    for message in found:
        message.role = "assistant"
        message.finish = message.finish or _finish(given)
    return found


def questions(span: Span) -> list[Message]:
    """What the model was told; empty where that was not recorded."""
    given = span.attributes
    request = parsed(given.get("gcp.vertex.agent.llm_request"))
    ways = (
        lambda: _messages(given.get("gen_ai.input.messages")),
        lambda: [_message(each) for each in listing(request, "contents")],
        lambda: _numbered(given, "gen_ai.prompt"),
        lambda: _numbered(given, "llm.input_messages"),
        lambda: _messages(given.get("ai.prompt.messages")),
        lambda: _messages(within(parsed(given.get("ai.prompt")), "messages")),
        lambda: _event_questions(span),
    )
    return _first(ways)


def _first(ways: Iterable[Callable[[], list[Message]]]) -> list[Message]:
    """The messages of the first convention in which any say something."""
    for way in ways:
        found = [each for each in way() if each.text or each.calls or each.results]
        if found:
            return found
    return []


def finish_of(span: Span) -> str | None:
    """Why the model stopped, where only that was recorded."""
    return _finish(span.attributes)


def parsed(value: object) -> object:
    """A value that may be JSON in a text; the text itself where it is none."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
        return value
    found = row(value.encode(errors="replace"))
    return value if found is None else found


def plain(value: object) -> str:
    """What a tool gave back, as a text."""
    value = parsed(value)
    if value is None or isinstance(value, str):
        return value or ""
    parts = listing(value, "content") or listing(value, "parts") or listing(value)
    said = "\n".join(each for part in parts if (each := _part_text(part)))
    return said or json.dumps(value, ensure_ascii=False, default=str)


def _messages(value: object) -> list[Message]:
    value = parsed(value)
    found = value if isinstance(value, list) else [value]
    return [_message(parsed(each)) for each in found if each]


def _message(given: object, *, finish: str | None = None) -> Message:
    """A message in any of the forms that are about."""
    role = text(given, "role") or ""
    message = Message(
        "assistant" if role in ("model", "ai") else role,
        finish=finish or text(given, "finish_reason") or text(given, "finishReason"),
    )
    content = next(
        (each for key in ("parts", "content", "contents") if (each := within(given, key))), None
    )
    content = parsed(content) if isinstance(content, str) and _may_be_parts(content) else content
    said = [content] if isinstance(content, str) else []
    for part in listing(content):
        _take(message, part, said)
    for call in _values(within(given, "tool_calls")):
        _take_call(message, mapping(call).get("tool_call", call))
    id = text(given, "tool_call_id") or text(given, "id")
    if message.role == "tool" and id and not message.results:
        message.results[id] = content
    message.text = "\n".join(each for each in said if each)
    return message


def _may_be_parts(content: str) -> bool:
    return content.startswith('[{"') and '"type"' in content[:200]


def _take(message: Message, part: object, said: list[str]) -> None:
    kind = text(part, "type") or ""
    inner = mapping(part)
    for key in ("function_call", "functionCall"):
        if key in inner:
            return _take_call(message, inner[key])
    for key in ("function_response", "functionResponse"):
        if key in inner:
            return _take_result(message, inner[key])
    if kind in _CALLS:
        _take_call(message, part)
    elif kind in _RESULTS:
        _take_result(message, part)
    else:
        said.append(_part_text(part))
    return None


def _part_text(part: object) -> str:
    if isinstance(part, str):
        return part
    if text(part, "type") in ("reasoning", "thinking") or within(part, "thought") is True:
        return ""
    inner = mapping(part).get("message_content", part)
    return text(inner, "text") or text(inner, "content") or ""


def _take_call(message: Message, call: object) -> None:
    function = mapping(call).get("function", call)
    name = text(function, "name") or text(call, "toolName") or text(call, "name")
    if not name:
        return
    keys = ("arguments", "args", "input")
    given = next((each for key in keys if (each := within(function, key)) is not None), None)
    id = text(call, "id") or text(call, "toolCallId") or text(call, "call_id")
    message.calls.append(Asked(id, name, parsed(given)))


def _take_result(message: Message, result: object) -> None:
    ids = ("id", "tool_call_id", "tool_use_id", "toolCallId", "call_id")
    id = next((found for key in ids if (found := text(result, key))), None)
    keys = ("response", "result", "output", "content")
    if id is not None:
        message.results[id] = next(
            (each for key in keys if (each := within(result, key)) is not None), None
        )


def _numbered(given: Mapping[str, object], prefix: str) -> list[Message]:
    """Messages whose parts are attributes of their own, `PREFIX.0.role` and so on."""
    tree = _tree(given, prefix)
    return [_message(mapping(each).get("message", each)) for each in _values(tree)]


def _tree(given: Mapping[str, object], prefix: str) -> object:
    root: dict[str, object] = {}
    for key, value in given.items():
        if not key.startswith(f"{prefix}."):
            continue
        place = root
        *steps, last = key[len(prefix) + 1 :].split(".")[:12]
        for step in steps:
            below = place.setdefault(step, {})
            if not isinstance(below, dict):
                break
            place = below
        else:
            place.setdefault(last, value)
    return _lists(root)


def _lists(node: object) -> object:
    """The tree, in which objects whose keys are all numbers are lists."""
    if not isinstance(node, dict):
        return node
    below = {key: _lists(value) for key, value in node.items()}
    if below and all(key.isascii() and key.isdigit() and len(key) < 6 for key in below):
        return [below[key] for key in sorted(below, key=int) if int(key) < _PLACES]
    return below


def _values(value: object) -> list[object]:
    value = parsed(value)
    return value if isinstance(value, list) else []


def _vercel_answer(given: Mapping[str, object]) -> list[Message]:
    calls = _values(given.get("ai.response.toolCalls") or given.get("ai.result.toolCalls"))
    said = given.get("ai.response.text", given.get("ai.result.text"))
    message = Message("assistant", said if isinstance(said, str) else "")
    for call in calls:
        _take_call(message, call)
    return [message]


def _finish(given: Mapping[str, object]) -> str | None:
    reasons = parsed(given.get("gen_ai.response.finish_reasons"))
    found = reasons[-1] if isinstance(reasons, list) and reasons else reasons
    found = found or given.get("ai.response.finishReason") or given.get("llm.finish_reason")
    return found if isinstance(found, str) and found else None


_ASKING = {
    "gen_ai.user.message": "user",
    "gen_ai.system.message": "system",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_DETAILS = "gen_ai.client.inference.operation.details"


def _event_answers(span: Span) -> list[Message]:
    found: list[Message] = []
    for event in span.events:
        name = event.get("name")
        if name == "gen_ai.choice":
            body = _body(event)
            inner = parsed(within(body, "message"))
            found.append(
                _message(
                    inner if isinstance(inner, dict) else body, finish=text(body, "finish_reason")
                )
            )
        elif name == "gen_ai.content.completion":
            found += _messages(event.get("gen_ai.completion"))
        elif name == _DETAILS:
            found += _messages(event.get("gen_ai.output.messages"))
    return found


def _event_questions(span: Span) -> list[Message]:
    found: list[Message] = []
    for event in span.events:
        name = event.get("name")
        if isinstance(name, str) and name in _ASKING:
            message = _message(_body(event))
            message.role = _ASKING[name]
            found.append(message)
        elif name == "gen_ai.content.prompt":
            found += _messages(event.get("gen_ai.prompt"))
        elif name == _DETAILS:
            found += _messages(event.get("gen_ai.input.messages"))
    return found


def _body(event: Mapping[str, object]) -> object:
    """What an event says: in a body of its own, or in its attributes."""
    for key in ("body", "event.body", "gen_ai.event.content"):
        body = parsed(event.get(key))
        if isinstance(body, dict):
            return body
    return dict(event)


def last_asked(messages: Iterable[Message]) -> tuple[list[str], str | None]:
    """What users said after the model's last word, and what they said last at all."""
    after: list[str] = []
    last = None
    for message in messages:
        if message.role == "assistant":
            after = []
        elif message.role == "user" and message.text:
            after.append(message.text)
            last = message.text
    return after, last
