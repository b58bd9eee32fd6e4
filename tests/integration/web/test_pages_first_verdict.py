"""From an empty data folder to the first verdict, as the first page says it, on real hosts."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect
from tests.integration.browser import serving, visit

pytestmark = pytest.mark.sandbox
WAIT = 60_000
"""Milliseconds after which the runs count as hanging."""


async def test_three_steps_lead_to_the_first_verdict(tmp_path: Path, chromium: Browser) -> None:
    """Both controls on a full disk: who does nothing fails, the reference passes."""
    with serving(tmp_path) as site:
        async with visit(chromium, site) as made:
            page = made.page
            await made.go("/")
            await page.get_by_role("link", name="Start both on a full disk").click()
            await expect(page.get_by_label("A runaway log fills the disk")).to_be_checked()
            await page.get_by_role("button", name="Start", exact=True).click()
            await expect(page.locator("#batch")).to_contain_text(
                "2 of 2 over: 1 passed 1 failed", timeout=WAIT
            )
            await made.looked_over("batch-first")
            rows = page.locator("tbody tr")
            for agent, verdict in (("noop", "failed"), ("reference", "passed")):
                fitting = rows.filter(has=page.get_by_role("cell", name=agent, exact=True))
                await expect(fitting).to_have_count(1)
                await expect(fitting.filter(has_text=verdict)).to_have_count(1)
            await made.go("/scenarios")
            await made.looked_over("scenarios-first")
