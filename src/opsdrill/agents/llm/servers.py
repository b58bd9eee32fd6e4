"""MCP servers: reached once for a job, and every call of a task recorded as its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastmcp.client.transports import StdioTransport
from pydantic_ai import RunContext
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.toolsets import AbstractToolset, WrapperToolset
from pydantic_ai.toolsets.abstract import ToolsetTool
from pydantic_core import to_json

from opsdrill.agents.llm.fence import fenced
from opsdrill.agents.task import TaskWork
from opsdrill.hosts.secret import Secrets
from opsdrill.model.agent import McpServer

SERVER_SECONDS = 30.0
"""How long a server may take to start."""
CALL_SECONDS = 300.0
"""How long a server may take for one call."""
_GIVEN = ("PATH", "HOME", "LANG")


def server_tools(name: str, server: McpServer, folder: Path) -> MCPToolset[None]:
    """The tools of a server; nothing is reached yet.

    Args:
        name: what the file calls it.
        server: how it is reached.
        folder: where the program of a server starts, and relative paths of secrets.

    Raises:
        UsageError: its token cannot be had.
    """
    if server.command is not None:
        program, *arguments = server.command
        environment = {
            key: os.environ[key] for key in (*_GIVEN, *server.environment) if key in os.environ
        }
        client: Any = StdioTransport(
            program, arguments, env=environment, cwd=str(folder), keep_alive=False
        )
        return _toolset(client, name, None)
    headers = None
    if server.token is not None:
        token = Secrets({name: server.token}, folder).value(name)
        headers = {"Authorization": f"Bearer {token}"}
    return _toolset(server.url, name, headers)


def _toolset(client: Any, name: str, headers: dict[str, str] | None) -> MCPToolset[None]:
    return MCPToolset(
        client,
        id=name,
        headers=headers,
        tool_error_behavior="failed",
        init_timeout=SERVER_SECONDS,
        read_timeout=CALL_SECONDS,
    )


def recorded(
    servers: Mapping[str, AbstractToolset[None]], work: TaskWork
) -> list[AbstractToolset[None]]:
    """The servers' tools for one task, each under its server's name."""
    return [RecordedServer(tools, name, work).prefixed(name) for name, tools in servers.items()]


@dataclass
class RecordedServer(WrapperToolset[None]):
    """The tools of one server, called by one task.

    Args:
        wrapped: the tools.
        name: the server's name.
        work: the task.
    """

    name: str
    work: TaskWork

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[None],
        tool: ToolsetTool[None],
    ) -> Any:
        with self.work.call("mcp", name, tool_args, self.name) as returned:
            try:
                result = await self.wrapped.call_tool(name, tool_args, ctx, tool)
            except (ToolFailed, ModelRetry) as error:
                returned.output = error.message
                raise type(error)(fenced(error.message)) from None
            returned.output = _text(result)
            returned.outcome = "ran"
        return fenced(returned.output)


def _text(result: Any) -> str:
    if isinstance(result, str):
        return result
    return to_json(result, fallback=lambda value: f"[{type(value).__name__}]").decode()
