"""The page of a run: its verdict and why, the transcript, and what it shows while it goes on."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Literal

import httpx
import pytest
from playwright.async_api import Browser, Route, expect
from tests.integration.browser import NARROW, WAIT, WIDE, Site, Visit, visit
from tests.integration.web.kept_records import hostile, large
from tests.unit.api.drills import over, started

SIZES = pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
SCHEMES = pytest.mark.parametrize("scheme", ["light", "dark"])


def client(site: Site) -> httpx.AsyncClient:
    headers = {"authorization": f"Bearer {site.token}"}
    return httpx.AsyncClient(base_url=site.address, headers=headers)


async def ran(site: Site, agent: str) -> str:
    """A run that is over."""
    async with client(site) as api:
        [run] = await started(api, agent)
        await over(api, [run])
        return run


@SIZES
@SCHEMES
async def test_a_run_fits_and_can_be_used_by_everybody(
    site: Site, chromium: Browser, size: tuple[int, int], scheme: Literal["light", "dark"]
) -> None:
    run = await ran(site, "bad")
    async with visit(chromium, site, size=size, scheme=scheme) as made:
        await made.go(f"/runs/{run}")
        await made.looked_over("run")


async def test_a_verdict_explains_itself(site: Site, chromium: Browser) -> None:
    """The completion check first, each rule with its reason, its evidence one click away."""
    run = await ran(site, "bad")
    async with visit(chromium, site) as made:
        page = made.page
        await made.go(f"/runs/{run}")
        await expect(page.locator("#run-head")).to_contain_text("failed")
        await expect(page.locator("#run-head")).to_contain_text("the agent's")
        rows = page.locator("#run-rules > .rule")
        await expect(rows.first).to_contain_text("Completion check")
        rule = page.locator("#rule-0")
        await expect(rule).to_contain_text("exit status 1 on web-01, expected 0")
        await expect(rule.locator(".body")).to_contain_text("mended?")


async def test_a_match_leads_to_its_line(site: Site, chromium: Browser) -> None:
    """The span is marked, and the link goes to the line of the transcript that has it."""
    run = await ran(site, "good")
    async with visit(chromium, site) as made:
        page = made.page
        await made.go(f"/runs/{run}")
        rule = page.locator("#rule-1")
        await rule.locator("summary").click()
        await expect(rule.locator("mark")).to_have_text("mended")
        await rule.get_by_role("link", name=re.compile("line .* of the transcript")).click()
        line = page.locator(".line.here")
        await expect(line).to_have_attribute("open", "")
        await expect(line).to_contain_text("all is mended")
        await made.shot("run-match")


async def test_a_task_of_the_lanes_leads_to_its_line_by_keyboard(
    site: Site, chromium: Browser
) -> None:
    run = await ran(site, "good")
    async with visit(chromium, site) as made:
        page = made.page
        await made.go(f"/runs/{run}")
        await page.locator(".lanes a").first.focus()
        await page.keyboard.press("Enter")
        await expect(page.locator(".line.here summary")).to_be_focused()
        await expect(page.locator(".line.here")).to_contain_text("mend it")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await expect(page.locator(".line.call[open]").first).to_contain_text("mend")


async def test_a_run_is_watched_live(site: Site, chromium: Browser) -> None:
    """Phases, tasks and commands appear; the page settles into that of a finished run."""
    async with client(site) as api, visit(chromium, site) as made:
        [run] = await started(api, "slow")
        page = made.page
        await made.go(f"/runs/{run}")
        await expect(page.locator("#lines")).to_contain_text("look")
        await expect(page.locator(".lanes .task.running")).to_have_count(1)
        await expect(page.locator(".phases")).to_contain_text("execute")
        await made.looked_over("run-live")
        # Nothing happens now but that time goes on.
        took = page.locator("#took")
        for _ in range(2):
            await expect(took).not_to_have_text(await took.inner_text())
        await page.get_by_role("button", name="Cancel").click()
        # The head is made anew whenever something happens, also while the question is open.
        await page.locator("#run-head").evaluate("one => one.replaceWith(one.cloneNode(true))")
        await page.get_by_role("dialog").get_by_role("button", name="Stop it").click()
        await expect(page.locator("#run-head")).to_contain_text("cancelled")
        await expect(page.get_by_role("button", name="Cancel")).to_have_count(0)


async def test_a_page_settles_by_itself(site: Site, chromium: Browser) -> None:
    async with client(site) as api, visit(chromium, site) as made:
        [run] = await started(api, "slow")
        page = made.page
        await made.go(f"/runs/{run}")
        await expect(page.locator("#lines")).to_contain_text("look")
        await api.post(f"/api/v1/runs/{run}/cancel")
        await expect(page.locator("#run-head .verdict")).to_contain_text("cancelled")
        await expect(page.locator("#run[data-live]")).to_have_count(0)


async def test_a_run_that_stops_before_the_agent_claims_nothing_of_agent_and_rules(
    site: Site, chromium: Browser
) -> None:
    """A watched page comes to say the same as one that is opened later."""
    body = {
        "key": "never-ready",
        "title": "Not broken",
        "ticket_title": "It is broken",
        "hosts": ["web-01"],
        "ready": [{"run": "broken?", "fails": True, "within": 3}],
        "validation": [{"label": "mended", "validator": "host_state", "run": "mended?"}],
    }
    async with client(site) as api, visit(chromium, site) as made:
        await api.post("/api/v1/scenarios", json=body)
        [run] = await started(api, "good", scenarios=["never-ready"])
        page = made.page
        await made.go(f"/runs/{run}")
        await expect(page.locator("#no-lines")).to_contain_text("it appears here as it happens")
        for _ in range(2):
            await expect(page.locator("#run-head .notice")).to_contain_text("Ready check 1")
            await expect(page.locator("#no-lines")).to_have_text("The agent never began.")
            rules = page.locator("#run-rules")
            await expect(rules).to_contain_text("1 rule")
            await expect(rules).to_contain_text("Nothing was graded: the run ended before.")
            await expect(page.locator("#run-ticket")).to_contain_text("The agent never got it.")
            await expect(page.locator("#run")).not_to_contain_text("infrastructure")
            await page.reload()
        await made.looked_over("run-never-ready")
        report = (await api.get(f"/runs/{run}/report")).text
        assert "The agent never began." in report
        assert "Show only lines with" not in report


async def test_fifty_thousand_commands_stay_smooth(site: Site, chromium: Browser) -> None:
    run = large(site.home)
    async with visit(chromium, site) as made:
        page = made.page
        for name in ("first", "second"):
            began = time.monotonic()
            await made.go(f"/runs/{run}")
            print(f"{name} verdict: {time.monotonic() - began:.2f} s")
            await expect(page.locator("#line-1")).to_be_visible(timeout=WAIT)
            print(f"{name} paint: {time.monotonic() - began:.2f} s")
        frames = await page.evaluate(
            """async () => {
              const lines = document.getElementById("lines");
              const times = [];
              for (let step = 0; step < 120; step += 1) {
                const began = performance.now();
                lines.scrollTop += 5000;
                await new Promise(requestAnimationFrame);
                times.push(performance.now() - began);
              }
              return [Math.max(...times), times.reduce((a, b) => a + b) / times.length,
                      lines.querySelectorAll(".line").length];
            }"""
        )
        print(f"frames: longest {frames[0]:.0f} ms, mean {frames[1]:.0f} ms, {frames[2]} lines")
        assert frames[2] < 200
        assert frames[0] < 2000
        began = time.monotonic()
        await page.get_by_label("Find").fill("needle-73-321 ")
        await page.keyboard.press("Enter")
        await expect(page.locator("#find-told")).to_have_text("1 of 1")
        await expect(page.locator(".line.here")).to_contain_text("needle-73-321")
        print(f"search: {time.monotonic() - began:.2f} s")
        await page.locator("#rule-0 summary").click()
        await page.locator("#rule-0").get_by_role("link").click()
        await expect(page.locator(".line.here[open]")).to_contain_text("needle-99-499")
        await made.shot("run-large")
        heap = await page.evaluate("performance.memory.usedJSHeapSize / 1e6")
        print(f"heap: {heap:.0f} MB")


@SIZES
@SCHEMES
async def test_the_verdict_is_there_before_a_large_record_is_read(
    site: Site, chromium: Browser, size: tuple[int, int], scheme: Literal["light", "dark"]
) -> None:
    """What was recorded comes after it; what was opened stays open, and the address is followed."""
    run = large(site.home, 8_000, id=f"run-of-8000-{size[0]}-{scheme}")
    held, read = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        held.set()
        await read.wait()
        await route.continue_()

    async with visit(chromium, site, size=size, scheme=scheme) as made:
        page = made.page
        await page.route("**/runs/*?wait=yes", hold)
        await made.go(f"/runs/{run}#line-7000")
        await held.wait()
        await expect(page.locator("#run-head .verdict")).to_contain_text("passed")
        await expect(page.locator("#rule-0")).to_contain_text("found in 1 of 8000 values")
        await page.locator("#rule-0 summary").click()
        await expect(page.locator("#rule-0")).to_contain_text("The record is not read yet.")
        await expect(page.locator("#run-unread")).to_be_visible()
        await made.looked_over("run-unread")
        read.set()
        await expect(page.locator(".line.here[open]")).to_contain_text("needle-13-486")
        await expect(page.locator("#run-unread")).to_have_count(0)
        await expect(page.locator("#rule-0[open] a").first).to_have_attribute("href", LINE)
        await expect(page.locator("#run-lanes .task")).to_have_count(16)
        await expect(page.locator("#run-hosts")).to_contain_text("Grades")
        await made.looked_over("run-read")


LINE = re.compile(r"#line-\d+")


async def test_a_large_record_is_read_without_scripts(site: Site, chromium: Browser) -> None:
    run = large(site.home, 8_000, id="run-without-scripts")
    async with visit(chromium, site, scripts=False) as made:
        await made.go(f"/runs/{run}?from=60")
        await expect(made.page.locator("#line-60")).to_be_visible()


async def test_a_large_record_that_is_damaged_is_said_to_be_below_its_verdict(
    site: Site, chromium: Browser
) -> None:
    before = set((site.home / "files").glob("??/*"))
    run = large(site.home, 8_500, id="run-damaged")
    [file] = set((site.home / "files").glob("??/*")) - before
    whole = file.read_bytes()
    async with visit(chromium, site) as made:
        page = made.page
        file.write_bytes(whole[:-1])
        await made.go(f"/runs/{run}")
        alert = page.locator("#run-unread").get_by_role("alert")
        await expect(alert).to_contain_text("What was recorded cannot be shown: ")
        await expect(alert).to_contain_text("damaged")
        made.expected("503")
        await expect(page.locator("#run-head .verdict")).to_contain_text("passed")
        await made.looked_over("run-damaged")
        file.write_bytes(whole)
        await alert.get_by_role("button", name="Try again").click()
        await expect(page.locator("#line-1")).to_be_visible()


@SIZES
async def test_hostile_text_is_text_everywhere(
    site: Site, chromium: Browser, size: tuple[int, int]
) -> None:
    """HTML, scripts, ANSI, marks that turn text round, lines of a megabyte, NUL."""
    run = hostile(site.home)
    async with visit(chromium, site, size=size) as made:
        page = made.page
        await made.go(f"/runs/{run}")
        await made.looked_over("run-hostile")
        for details in await page.locator("details:not([open]) > summary").all():
            if await details.is_visible():
                await details.click()
        await made.shot("run-hostile-open")
        assert await made.overflow() <= 0
        await nothing_ran(made)
        for place in (
            "#run-head", "#run-rules", "#run-ticket", "#lines", "#run-hosts", "#run-lanes",
        ):  # fmt: skip
            await expect(page.locator(place)).to_contain_text("<script>alert(1)</script>")
        for path in ("whole/line/0", "whole/rules/0", "whole/setup/0", "regrade"):
            await made.go(f"/runs/{run}/{path}")
            await nothing_ran(made)
            if not path.startswith("whole"):
                await made.shot(f"run-hostile-{path}")
            assert await made.overflow() <= 0, path


async def nothing_ran(made: Visit) -> None:
    """No element came out of a text, and no character hides or turns round what follows."""
    page = made.page
    assert await page.locator("main script, main img, main style").count() == 0
    text = await page.locator("body").inner_text()
    for character in ("\x1b", "\u202e", "\u200b", "\x00"):
        assert character not in text


async def test_a_run_is_deleted_after_a_question(site: Site, chromium: Browser) -> None:
    run = await ran(site, "bad")
    async with visit(chromium, site) as made:
        await made.go(f"/runs/{run}")
        await made.page.get_by_role("button", name="Delete").click()
        await made.page.get_by_role("dialog").get_by_role("button", name="Delete it").click()
        await expect(made.page).to_have_url(f"{site.address}/runs")
        await made.go(f"/runs/{run}")
        made.expected("404")


async def test_a_rule_is_edited_the_flip_seen_and_kept(site: Site, chromium: Browser) -> None:
    """The preview tells what flips by the scenario's present rules; then the grade is kept."""
    run = await ran(site, "bad")
    file = site.folder / "scenarios" / "drill" / "scenario.yaml"
    before = file.read_text()
    file.write_text(before.replace("label: mended, ", "label: mended, required: false, "))
    file.write_text(file.read_text().replace("pattern: mended", "pattern: looked, negate: true"))
    try:
        async with visit(chromium, site) as made:
            page = made.page
            await made.go(f"/runs/{run}")
            await page.get_by_role("link", name="Regrade").click()
            await expect(page.locator("tbody")).to_contain_text("said so")
            await made.looked_over("regrade")
            await page.get_by_role("button", name="Keep this grade").click()
            await expect(page.locator("#run-hosts")).to_contain_text("No. 2")
    finally:
        file.write_text(before)


async def test_the_transcript_is_read_without_scripts(site: Site, chromium: Browser) -> None:
    run = await ran(site, "good")
    async with visit(chromium, site, scripts=False) as made:
        await made.go(f"/runs/{run}")
        await made.page.locator(".line.call summary").first.click()
        await expect(made.page.locator(".line.call[open]")).to_contain_text("mend")
