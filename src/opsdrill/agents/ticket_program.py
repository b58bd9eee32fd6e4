"""`opsdrill-ticket`: what a command agent reads its ticket with, and reports to it.

This file is copied to where the agent is and runs there by itself, with nothing but Python: it is
called often, so it loads next to nothing.
"""

# ruff: noqa: T201

import json
import os
import socket
import sys

USAGE = """\
usage: opsdrill-ticket [show [--json]]
       opsdrill-ticket post TEXT                    tell the requester something
       opsdrill-ticket plan TEXT                    say what is planned
       opsdrill-ticket summary [--host HOST] TEXT   say what was done, on a host or in all
       opsdrill-ticket resolve RESOLUTION [TEXT]    say how the job ends, and why
TEXT may be `-`: then it is read from standard input.
"""


class Trouble(Exception):
    """Said to who called; nothing was done."""


def main(arguments: list[str]) -> int:
    """Do what the arguments say; the exit status: 0 done, 1 refused, 2 wrong arguments."""
    if arguments[:1] in (["-h"], ["--help"], ["help"]):
        print(USAGE, end="")
        return 0
    try:
        command, *rest = arguments or ["show"]
        return _do(command, rest)
    except Trouble as trouble:
        print(f"opsdrill-ticket: {trouble}", file=sys.stderr)
        return 1
    except (IndexError, ValueError):
        print(USAGE, end="", file=sys.stderr)
        return 2


def _do(command: str, rest: list[str]) -> int:
    if command == "show":
        if rest not in ([], ["--json"]):
            raise ValueError
        _show(json.loads(_ask("GET", "", None)), plain=not rest)
    elif command == "post":
        _ask("POST", "/messages", {"body": _text(rest)})
    elif command == "plan":
        _ask("PUT", "/plan", {"plan": _text(rest)})
    elif command == "summary":
        host = {}
        if rest[0] == "--host":
            host, rest = {"host": rest[1]}, rest[2:]
        _ask("PUT", "/summary", {"summary": _text(rest), **host})
    elif command == "resolve":
        why = {"reasoning": _text(rest[1:])} if rest[1:] else {}
        _ask("PUT", "/resolution", {"resolution": rest[0], **why})
    else:
        raise ValueError
    return 0


def _text(words: list[str]) -> str:
    if not words:
        raise ValueError
    text = sys.stdin.read() if words == ["-"] else " ".join(words)
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _show(ticket: dict, *, plain: bool) -> None:  # type: ignore[type-arg]
    if not plain:
        print(json.dumps(ticket, indent=2))
        return
    print(f"{ticket['title']}\n\n{ticket['body'].rstrip()}")
    for name in ("hosts", "operational_rules"):
        if ticket[name]:
            print(f"\n{name.replace('_', ' ').capitalize()}:")
            print("\n".join(f"- {item}" for item in ticket[name]))
    for message in ticket["messages"]:
        print(f"\n{message['author']}: {message['body']}")


def _ask(method: str, path: str, body: object) -> bytes:
    url = os.environ.get("OPSDRILL_TICKET_URL", "")
    scheme, _, rest = url.partition("://")
    address, _, root = rest.partition("/")
    host, _, port = address.rpartition(":")
    if scheme != "http" or not port.isdigit():
        raise Trouble("OPSDRILL_TICKET_URL is not set: this only works where an agent runs")
    content = b"" if body is None else json.dumps(body).encode()
    head = (
        f"{method} /{root}{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n"
        f"Authorization: Bearer {os.environ.get('OPSDRILL_TICKET_TOKEN', '')}\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    try:
        with socket.create_connection((host, int(port)), 30) as connection:
            connection.sendall(head.encode() + content)
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
    except OSError as error:
        raise Trouble(f"the ticket cannot be reached: {error}") from None
    line, _, rest_of_it = answer.partition(b"\r\n")
    answered = rest_of_it.partition(b"\r\n\r\n")[2]
    if line.split(b" ")[1:2] != [b"200"]:
        try:
            raise Trouble(json.loads(answered)["error"])
        except (ValueError, KeyError):
            raise Trouble("no answer that makes sense") from None
    return answered


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
