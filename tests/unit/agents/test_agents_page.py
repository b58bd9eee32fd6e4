"""The page about agents says every key of an agents file, and which adapter keeps to it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opsdrill.agents.adapters.command import CommandAdapter
from opsdrill.agents.adapters.http import HttpAdapter
from opsdrill.agents.adapters.llm import LlmAdapter
from opsdrill.agents.llm.fence import TEXT_KEPT
from opsdrill.agents.llm.job import TASKS
from opsdrill.agents.llm.worker import REQUESTS
from opsdrill.model.agent import AgentSettings, Budgets

DOCS = Path(__file__).parents[3] / "docs" / "reference"
PAGE = (DOCS / "agents.md").read_text()


@pytest.mark.parametrize("key", [*AgentSettings.model_fields, *Budgets.model_fields])
def test_every_key_is_on_the_page(key: str) -> None:
    assert f"`{key}`" in PAGE


@pytest.mark.parametrize("adapter", [CommandAdapter, LlmAdapter, HttpAdapter])
def test_the_keys_of_an_adapter_are_those_on_the_page(
    adapter: type[CommandAdapter] | type[LlmAdapter] | type[HttpAdapter],
) -> None:
    [row] = re.findall(rf"^[|] `{adapter.name}`(?:, presets)? [|] (`.*) [|]$", PAGE, re.M)
    row = row.replace("(`seconds` alone)", "")
    assert set(re.findall("`([a-z_]+)`", row)) == adapter.keeps


def test_the_numbers_on_the_page_are_those_of_the_code() -> None:
    assert f"a job at most {TASKS} tasks" in PAGE
    assert f"{TEXT_KEPT:,} characters" in PAGE
    assert f"more than {REQUESTS} requests" in PAGE


def test_every_event_is_on_the_page_about_services() -> None:
    page = (DOCS / "http-agents.md").read_text()
    openapi = (DOCS / "http-agents.openapi.json").read_text()
    for event in set(re.findall(r'"const": "([a-z_]+)"', openapi)):
        assert f"| `{event}` |" in page
