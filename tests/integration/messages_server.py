"""A scripted model server on loopback that speaks Anthropic's Messages API, streamed.

https://docs.anthropic.com/en/api/messages-streaming tells the events.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def messages_server(commands: Sequence[str]) -> Iterator[str]:
    """The address of a model that has the tool `Bash` run one command after the other."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

        def do_HEAD(self) -> None:
            self.send_response(200)
            self.end_headers()

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if "count_tokens" in self.path:
                self._send("application/json", json.dumps({"input_tokens": 10}).encode())
                return
            tools = {tool.get("name") for tool in asked.get("tools", ())}
            results = sum(
                part.get("type") == "tool_result"
                for message in asked["messages"]
                for part in message["content"]
                if isinstance(part, dict)
            )
            works = "Bash" in tools and results < len(commands)
            block = _call(results, commands[results]) if works else _words("All is done.")
            message = {
                "id": f"msg_{results}",
                "type": "message",
                "role": "assistant",
                "model": asked["model"],
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": {"input_tokens": 100, "output_tokens": 1},
            }
            stop = "tool_use" if works else "end_turn"
            if not asked.get("stream"):
                whole = {**message, "content": [block[2]], "stop_reason": stop}
                self._send("application/json", json.dumps(whole).encode())
                return
            events: list[dict[str, object]] = [
                {"type": "message_start", "message": message},
                {"type": "content_block_start", "index": 0, "content_block": block[0]},
                {"type": "content_block_delta", "index": 0, "delta": block[1]},
                {"type": "content_block_stop", "index": 0},
                {
                    "type": "message_delta",
                    "delta": {"stop_reason": stop, "stop_sequence": None},
                    "usage": {"output_tokens": 10},
                },
                {"type": "message_stop"},
            ]
            lines = (f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)
            self._send("text/event-stream", "".join(lines).encode())

        def do_GET(self) -> None:
            self._send("application/json", b"{}")

        def _send(self, kind: str, content: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


_Block = tuple[dict[str, object], dict[str, object], dict[str, object]]
"""As it begins, what is added, and as a whole."""


def _call(number: int, command: str) -> _Block:
    given = {"command": command, "description": "a step"}
    begins: dict[str, object] = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash"}
    return (
        {**begins, "input": {}},
        {"type": "input_json_delta", "partial_json": json.dumps(given)},
        {**begins, "input": given},
    )


def _words(text: str) -> _Block:
    return (
        {"type": "text", "text": ""},
        {"type": "text_delta", "text": text},
        {"type": "text", "text": text},
    )
