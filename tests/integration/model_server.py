"""Scripted models: one brain, behind pydantic-ai's own offline model and behind a real server.

The server speaks the part of OpenAI's chat completions that agents use, over a socket.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel


@dataclass(frozen=True)
class Asked:
    """What a model is asked: the tools it has, its role, and what it was told, oldest first."""

    tools: tuple[str, ...]
    role: str
    told: tuple[str, ...]
    answers: int
    """How often it answered in this conversation already."""

    @property
    def plans(self) -> bool:
        return "resolve" in self.tools


@dataclass(frozen=True)
class Answer:
    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()


@dataclass(frozen=True)
class Refusal:
    """A status of HTTP instead of an answer."""

    status: int
    body: dict[str, Any] = field(default_factory=dict)


Brain = Callable[[Asked], Answer | Refusal]


def call(tool: str, **arguments: Any) -> Answer:
    return Answer(calls=((tool, arguments),))


def finish(summary: str = "Did it.", stop_reason: str = "done") -> Answer:
    return call("finish", stop_reason=stop_reason, summary=summary)


def offline(brain: Callable[[Asked], Answer]) -> FunctionModel:
    """The brain as a model that needs no server."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        tools = (*info.output_tools, *info.function_tools)
        told = [
            str(part.content)
            for message in messages
            for part in message.parts
            if isinstance(part, UserPromptPart | ToolReturnPart | RetryPromptPart)
        ]
        made = brain(
            Asked(
                tuple(tool.name for tool in tools),
                info.instructions or "",
                tuple(told),
                sum(isinstance(message, ModelResponse) for message in messages),
            )
        )
        parts: list[TextPart | ToolCallPart] = [TextPart(made.text)] if made.text else []
        parts += [ToolCallPart(tool, arguments) for tool, arguments in made.calls]
        return ModelResponse(parts)

    return FunctionModel(answer, model_name="scripted")


@dataclass
class ModelServer:
    """A server with a brain; `asked` is everything that it was asked, `keys` how it was greeted."""

    brain: Brain
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                fields = dict(
                    line.lower().split(": ", 1) for line in head.decode().split("\r\n")[1:] if line
                )
                body = json.loads(await reader.readexactly(int(fields["content-length"])))
                self.keys.add(fields.get("authorization", ""))
                status, answer = self._answer(body)
                content = json.dumps(answer).encode()
                writer.write(
                    f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n"
                    f"content-length: {len(content)}\r\n\r\n".encode()
                    + content
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _answer(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        messages = body["messages"]
        asked = Asked(
            tuple(tool["function"]["name"] for tool in body["tools"]),
            "\n".join(m["content"] for m in messages if m["role"] in ("system", "developer")),
            tuple(str(m["content"]) for m in messages if m["role"] in ("user", "tool")),
            sum(m["role"] == "assistant" for m in messages),
        )
        self.asked.append(asked)
        made = self.brain(asked)
        if isinstance(made, Refusal):
            return made.status, made.body
        calls = [
            {
                "id": f"call-{len(self.asked)}-{number}",
                "type": "function",
                "function": {"name": tool, "arguments": json.dumps(arguments)},
            }
            for number, (tool, arguments) in enumerate(made.calls)
        ]
        message = {"role": "assistant", "content": made.text or None}
        if calls:
            message["tool_calls"] = calls  # type: ignore[assignment]
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": "tool_calls" if calls else "stop",
        }
        return 200, {
            "id": f"answer-{len(self.asked)}",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": body["model"],
            "choices": [choice],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }


@asynccontextmanager
async def model_server(brain: Brain) -> AsyncIterator[ModelServer]:
    """A server on a port of this machine."""
    made = ModelServer(brain)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield made
    finally:
        server.close()
        await server.wait_closed()
