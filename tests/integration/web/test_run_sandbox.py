"""A run on real hosts, watched from its first phase to its verdict, and sent on as a report."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from playwright.async_api import Browser, expect
from tests.integration.browser import serving, visit

pytestmark = pytest.mark.sandbox
WAIT = 60_000
"""Milliseconds after which the run counts as hanging."""


async def test_a_run_on_real_hosts_is_watched_to_its_verdict(
    tmp_path: Path, chromium: Browser
) -> None:
    with serving(tmp_path) as site:
        headers = {"authorization": f"Bearer {site.token}"}
        async with (
            httpx.AsyncClient(base_url=site.address, headers=headers, timeout=60) as api,
            visit(chromium, site) as made,
        ):
            order = {"scenarios": ["full-disk"], "agents": ["reference"], "lab": "sandbox"}
            answer = await api.post("/api/v1/runs", json=order)
            assert answer.status_code == 202, answer.text
            page = made.page
            await made.go(f"/runs/{answer.json()['runs'][0]['id']}")
            await expect(page.locator("#run[data-live]")).to_have_count(1)
            await expect(page.locator(".phases .running")).to_have_count(1, timeout=WAIT)
            await expect(page.locator("#run-head .verdict")).to_contain_text("passed", timeout=WAIT)
            await expect(page.locator("#run[data-live]")).to_have_count(0)
            await expect(page.locator(".lanes .task")).not_to_have_count(0)
            await expect(page.locator("#run-hosts")).to_contain_text("changed files")
            rule = page.locator("#run-rules details.rule", has_text="host_state").first
            await rule.locator("summary").click()
            await expect(rule.locator(".body")).to_contain_text("exit status 0")
            await made.looked_over("run-sandbox")
