"""Gives tests the application over a real store, with a token of each role and a clock to turn."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from anyio import CapacityLimiter
from fastapi import FastAPI

from opsdrill.api.application import make_application
from opsdrill.api.service import Service
from opsdrill.app.access import ROLES, Access, Role
from opsdrill.app.live import LiveEngine
from opsdrill.app.stores import opened_store
from opsdrill.app.wiring import Place


@dataclass
class Clock:
    """A clock that stands until it is turned."""

    now: datetime = datetime(2026, 3, 1, 12, tzinfo=UTC)
    seconds: float = 0.0

    def turn(self, by: timedelta) -> None:
        self.now += by
        self.seconds += by.total_seconds()


@dataclass
class Api:
    """The application, and clients of it."""

    service: Service
    clock: Clock
    secrets: dict[Role, str]
    application: FastAPI
    clients: list[httpx.AsyncClient] = field(default_factory=list)

    def client(self, role: Role | None = None, **more: str) -> httpx.AsyncClient:
        """One that sends the token of a role, or none; `more` are its headers."""
        headers = {name.replace("_", "-"): value for name, value in more.items()}
        if role is not None:
            headers["authorization"] = f"Bearer {self.secrets[role]}"
        made = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.application, raise_app_exceptions=False),
            base_url="http://localhost",
            headers=headers,
        )
        self.clients.append(made)
        return made

    async def browser(self, role: Role) -> tuple[httpx.AsyncClient, str]:
        """One that is logged in, and its CSRF token."""
        made = self.client()
        answer = await made.post("/api/v1/session", json={"token": self.secrets[role]})
        assert answer.status_code == 201
        return made, answer.json()["csrf"]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A data folder and a working folder of its own."""
    (tmp_path / "work").mkdir()
    return Place(tmp_path / "home", tmp_path / "work")


@pytest.fixture
async def api(place: Place) -> AsyncIterator[Api]:
    """The application as `opsdrill serve` makes it."""
    clock = Clock()
    with opened_store(place) as store:
        async with LiveEngine.started(place, store, notify=lambda _line: None) as engine:
            access = Access(store.access(), clock=lambda: clock.now)
            service = Service(place, store, access, engine, CapacityLimiter(8))
            service.attempts._clock = lambda: clock.seconds
            secrets: dict[Role, str] = {
                role: access.create(role, role, days=None, by=None).secret for role in ROLES
            }
            made = Api(service, clock, secrets, make_application(service))
            yield made
            for client in made.clients:
                await client.aclose()
