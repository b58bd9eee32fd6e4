"""Reads server-sent events as they come."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from tests.integration.served import Served

from opsdrill.app.access import Access, Role

NOTHING = 30.0
"""Seconds without anything after which a test gives up."""


def client_of(server: Served, role: Role = "admin") -> httpx.AsyncClient:
    """Somebody who calls, with a token of their own."""
    access = Access(server.store.access())
    secret = access.create(role, role, days=None, by=None).secret
    return httpx.AsyncClient(
        base_url=server.address,
        headers={"authorization": f"Bearer {secret}"},
        timeout=httpx.Timeout(NOTHING, pool=None),
        limits=httpx.Limits(max_connections=None),
    )


@dataclass(frozen=True)
class Event:
    """One server-sent event."""

    kind: str
    data: Any
    id: str | None


class Stream:
    """The events of one answer as they come.

    Attributes:
        pings: comments that came between them.
    """

    def __init__(self, answer: httpx.Response) -> None:
        self.pings = 0
        self._lines = answer.aiter_lines()

    async def __aiter__(self) -> AsyncIterator[Event]:
        known: dict[str, str] = {}
        async for line in self._lines:
            if line.startswith(":"):
                self.pings += 1
            elif line:
                name, _, value = line.partition(": ")
                known[name] = value
            elif "data" in known:
                yield Event(known["event"], json.loads(known["data"]), known.get("id"))
                known = {}
            else:
                known = {}


@asynccontextmanager
async def following(
    client: httpx.AsyncClient, path: str, last: str | None = None
) -> AsyncIterator[Stream]:
    """Follow events, as a browser does."""
    headers = {"last-event-id": last} if last is not None else {}
    async with client.stream("GET", path, headers=headers) as answer:
        assert answer.status_code == 200, await answer.aread()
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield Stream(answer)


async def all_of(client: httpx.AsyncClient, path: str, last: str | None = None) -> list[Event]:
    """Every event until the end."""
    async with following(client, path, last) as stream:
        return [event async for event in stream]
