"""Gives tests a site with a drill on scripted hosts, and a browser."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from playwright.async_api import Browser
from tests.integration.browser import Site, browser, needs_chromium, serving
from tests.unit.api.drills import small_place


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "integration/web" in item.nodeid:
            item.add_marker(needs_chromium)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server with the scenario `drill`, the agents good, bad and slow, and the lab `practice`."""
    folder = tmp_path_factory.mktemp("site")
    small_place(folder)
    (folder / "work" / "opsdrill.toml").write_text('agent-config = "agents.yaml"\n')
    with serving(folder) as made:
        yield made


@pytest.fixture
async def chromium() -> AsyncIterator[Browser]:
    async with browser() as made:
        yield made
