"""An MCP server of its own: one tool, `close_ticket`, over standard input and output."""

from __future__ import annotations

import json
import os
import sys

TOOL = {
    "name": "close_ticket",
    "description": "Closes a ticket of the tracker.",
    "inputSchema": {
        "type": "object",
        "properties": {"id": {"type": "integer"}},
        "required": ["id"],
    },
}


def answer(method: str, params: dict[str, object]) -> object:
    match method:
        case "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "tracker", "version": "1"},
            }
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            arguments = params["arguments"]
            assert isinstance(arguments, dict)
            closed = arguments["id"] == 7
            text = f"closed by {os.environ.get('TRACKER_USER', 'nobody')}" if closed else "no such"
            return {"content": [{"type": "text", "text": text}], "isError": not closed}
        case _:
            return {}


def spoken(line: str | bytes) -> str | None:
    """The answer to one message, if it wants one."""
    asked = json.loads(line)
    if "id" not in asked:
        return None
    result = answer(asked["method"], asked.get("params") or {})
    return json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result})


if __name__ == "__main__":
    for line in sys.stdin:
        if said := spoken(line):
            print(said, flush=True)
