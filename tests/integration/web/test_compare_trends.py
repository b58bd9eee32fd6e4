"""Comparisons and trends in a browser: regressions first, errors apart, flaky rules."""

from __future__ import annotations

from typing import Literal

import httpx
import pytest
from playwright.async_api import Browser, expect
from tests.integration.browser import NARROW, WIDE, Site, visit
from tests.unit.api.drills import over, started

SIZES = pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
SCHEMES = pytest.mark.parametrize("scheme", ["light", "dark"])


def client(site: Site) -> httpx.AsyncClient:
    headers = {"authorization": f"Bearer {site.token}"}
    return httpx.AsyncClient(base_url=site.address, headers=headers)


async def runs_by(site: Site, agent: str, count: int, **labels: str) -> list[str]:
    async with client(site) as api:
        runs = await started(api, agent, repeat=count, labels=labels)
        await over(api, runs)
        return runs


@SIZES
@SCHEMES
async def test_chosen_runs_stand_beside_each_other(
    site: Site, chromium: Browser, size: tuple[int, int], scheme: Literal["light", "dark"]
) -> None:
    """The choice of the table of runs; what the second judges otherwise, with a link to it."""
    [good] = await runs_by(site, "good", 1)
    [bad] = await runs_by(site, "bad", 1)
    async with visit(chromium, site, size=size, scheme=scheme) as made:
        await made.go(f"/compare?run={good}&run={bad}")
        rows = made.page.locator("tbody tr")
        await expect(rows.first).to_contain_text("worse")
        await expect(made.page.locator(".flips")).to_contain_text("mended")
        await expect(made.page.locator(f'.flips a[href="/runs/{bad}"]').first).to_be_visible()
        await made.looked_over("compare")


async def test_sets_by_filters_are_a_grid_with_regressions_first(
    site: Site, chromium: Browser
) -> None:
    await runs_by(site, "good", 2, commit="one")
    await runs_by(site, "bad", 2, commit="two")
    async with visit(chromium, site) as made:
        await made.go("/runs")
        await made.page.get_by_role("link", name="Compare sets of runs").click()
        await made.page.wait_for_url("**/compare")
        await made.looked_over("compare-empty")
        await made.page.get_by_label("First set").fill("label=commit:one")
        await made.page.get_by_label("Set 2").fill("label=commit:two")
        await made.page.get_by_label("A line for each").select_option("scenario")
        await made.page.get_by_role("button", name="Compare").click()
        await expect(made.page.locator("tbody tr").first).to_contain_text("2 of 2 passed")
        await expect(made.page.locator("tbody tr").first).to_contain_text("0 of 2 passed")
        await made.looked_over("compare-sets")


async def test_what_is_no_set_is_told(site: Site, chromium: Browser) -> None:
    async with visit(chromium, site) as made:
        for query in ("set=nonsense&set=agent%3Dgood", "set=colour%3Dred&set=agent%3Dgood"):
            await made.go(f"/compare?{query}")
            made.expected("422")
            await expect(made.page.locator("main").get_by_role("alert")).to_be_visible()
        await made.go("/compare?run=one&run=two")
        made.expected("404")


@SIZES
@SCHEMES
async def test_trends_tell_what_became_of_runs_and_which_rules_flip(
    site: Site, chromium: Browser, size: tuple[int, int], scheme: Literal["light", "dark"]
) -> None:
    """Runs of one version by one agent that were judged both ways make a rule flaky."""
    await runs_by(site, "bad", 1)
    script = site.folder / "bad.yaml"
    before = script.read_text()
    script.write_text((site.folder / "good.yaml").read_text())
    try:
        await runs_by(site, "bad", 1)
    finally:
        script.write_text(before)
    async with visit(chromium, site, size=size, scheme=scheme) as made:
        await made.go("/trends?scenario=drill")
        await expect(made.page.locator("#chart canvas")).to_be_visible()
        await expect(made.page.locator("section", has_text="Flaky rules")).to_contain_text(
            "[0] mended"
        )
        await made.looked_over("trends")
        await made.go("/trends?scenario=nothing")
        await made.looked_over("trends-empty")
