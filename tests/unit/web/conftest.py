"""Gives tests the site over a real store, and browsers that are logged in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest
from anyio import CapacityLimiter
from fastapi import FastAPI
from tests.unit.api.drills import small_place

from opsdrill.api.service import Service
from opsdrill.app.access import ROLES, Access, Role
from opsdrill.app.live import LiveEngine
from opsdrill.app.stores import opened_store
from opsdrill.web.application import make_site

HTML = {"accept": "text/html", "host": "localhost"}


@dataclass
class Pages:
    """The site, and browsers without scripts."""

    service: Service
    secrets: dict[Role, str]
    site: FastAPI

    def browser(self) -> httpx.AsyncClient:
        """One that nobody is logged in with."""
        transport = httpx.ASGITransport(self.site, raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=HTML)

    @asynccontextmanager
    async def logged_in(self, role: Role = "admin") -> AsyncIterator[tuple[httpx.AsyncClient, str]]:
        """One that is logged in, and its CSRF token."""
        async with self.browser() as made:
            answer = await made.post("/log-in", data={"token": self.secrets[role]})
            assert answer.status_code == 303, answer.text
            csrf = (await made.get("/api/v1/session")).json()["csrf"]
            yield made, csrf


@pytest.fixture
async def pages(tmp_path: Path) -> AsyncIterator[Pages]:
    """The site with the drill, its agents and labs."""
    place = small_place(tmp_path)
    settings = place.settings.model_copy(
        update={"scenarios": (str(place.folder / "scenarios"),), "agent_config": "agents.yaml"}
    )
    place = type(place)(place.home, place.folder, settings)
    with opened_store(place) as store:
        async with LiveEngine.started(place, store, notify=lambda _line: None) as engine:
            access = Access(store.access())
            service = Service(place, store, access, engine, CapacityLimiter(8))
            secrets: dict[Role, str] = {
                role: access.create(role, role, days=None, by=None).secret for role in ROLES
            }
            yield Pages(service, secrets, make_site(service))


class Read(HTMLParser):
    """A page as a browser takes it apart.

    Attributes:
        wrong: what no page of ours has: script of its own, handlers, other hosts, styles.
        text: what can be read on it, its attributes among that.
    """

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.wrong: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "script" and not values.get("src", "").startswith("/static/"):
            self.wrong.append(f"script {values}")
        if tag in ("img", "iframe", "style", "object", "base"):
            self.wrong.append(tag)
        for name, value in values.items():
            if name.startswith("on") or name == "style":
                self.wrong.append(f"{tag} {name}={value}")
            if name in ("href", "src", "action", "hx-get") and not value.startswith(("/", "#")):
                self.wrong.append(f"{tag} {name}={value}")
            self.text += f"{value}\n"

    def handle_data(self, data: str) -> None:
        self.text += data
