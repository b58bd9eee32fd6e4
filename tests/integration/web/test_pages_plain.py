"""The plain pages in a browser: at both widths, in both themes, used and looked at."""

from __future__ import annotations

import re
from typing import Literal

import httpx
import pytest
from playwright.async_api import Browser, expect
from tests.integration.browser import NARROW, WIDE, Site, Visit, visit
from tests.unit.api.drills import order, over, started

SIZES = pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
SCHEMES = pytest.mark.parametrize("scheme", ["light", "dark"])
EMPTY = {
    "first-steps": "/",
    "runs-empty": "/runs",
    "batches-empty": "/batches",
}
PAGES = {
    "runs": "/runs",
    "runs-none-fits": "/runs?scenario=nothing",
    "scenarios": "/scenarios",
    "scenarios-none-fits": "/scenarios?search=nothing",
    "scenario": "/scenarios/patch-web-hosts",
    "scenario-with-runs": "/scenarios/drill",
    "start": "/start?scenario=drill&agent=good",
    "batches": "/batches",
    "hosts": "/hosts",
    "settings": "/settings",
}


def client(site: Site) -> httpx.AsyncClient:
    headers = {"authorization": f"Bearer {site.token}"}
    return httpx.AsyncClient(base_url=site.address, headers=headers)


async def runs_there(site: Site) -> str:
    """Make sure that runs of three kinds are kept; gives the batch of the last."""
    async with client(site) as api:
        found = (await api.get("/api/v1/batches")).json()["batches"]
        if not found:
            for more in ({}, {"labels": {"team": "web"}}):
                runs = await started(api, "good", "bad", **more)
                await over(api, runs)
            found = (await api.get("/api/v1/batches")).json()["batches"]
        batch: str = found[0]["id"]
        return batch


@SIZES
@SCHEMES
async def test_pages_say_what_to_do_where_nothing_is_kept(
    site: Site, chromium: Browser, size: tuple[int, int], scheme: Literal["light", "dark"]
) -> None:
    async with visit(chromium, site, size=size, scheme=scheme) as made:
        for name, path in EMPTY.items():
            await made.go(path)
            await made.looked_over(name)
        await made.go("/")
        await expect(made.page.get_by_role("heading", level=1)).to_contain_text("Three steps")


@SIZES
@SCHEMES
async def test_every_page_fits_and_can_be_used_by_everybody(
    site: Site, chromium: Browser, size: tuple[int, int], scheme: Literal["light", "dark"]
) -> None:
    batch = await runs_there(site)
    async with visit(chromium, site, size=size, scheme=scheme) as made:
        for name, path in {**PAGES, "batch": f"/batches/{batch}"}.items():
            await made.go(path)
            if name == "hosts":
                await expect(made.page.locator(".htmx-request, .progress")).to_have_count(0)
            await made.looked_over(name)


async def test_the_log_in_page_leads_to_where_one_wanted_to_go(
    site: Site, chromium: Browser
) -> None:
    async with visit(chromium, site, token=None) as made:
        await made.go("/scenarios?search=disk")
        await expect(made.page).to_have_url(
            f"{site.address}/log-in?next=/scenarios%3Fsearch%3Ddisk"
        )
        await made.looked_over("log-in")
        await made.page.get_by_label("Token").fill("od_wrong")
        await made.page.get_by_role("button", name="Log in").click()
        await expect(made.page.get_by_role("alert").first).to_contain_text("no such token")
        made.expected("401")
        await made.looked_over("log-in-wrong")
        await made.page.get_by_label("Token").fill(site.token)
        await made.page.get_by_role("button", name="Log in").click()
        await expect(made.page).to_have_url(f"{site.address}/scenarios?search=disk")
        await made.page.get_by_role("button", name="Log out").click()
        await expect(made.page).to_have_url(f"{site.address}/log-in")
        await made.go("/runs")
        await expect(made.page).to_have_url(f"{site.address}/log-in?next=/runs")


@SIZES
async def test_errors_are_pages(site: Site, chromium: Browser, size: tuple[int, int]) -> None:
    async with visit(chromium, site, size=size) as made:
        await made.go("/no/such/page")
        made.expected("404")
        await expect(made.page.get_by_role("alert").first).to_contain_text(
            "There is no /no/such/page"
        )
        await made.looked_over("not-found")
        await made.go("/runs?label=nonsense")
        made.expected("422")
        await made.looked_over("runs-wrong-filter")


async def test_runs_are_started_followed_and_compared(site: Site, chromium: Browser) -> None:
    """Start, batch that goes on while one looks, results, choice of two."""
    async with visit(chromium, site) as made:
        page = made.page
        await made.go("/start")
        await page.get_by_label("A drill").check()
        await page.get_by_label("good").check()
        await page.get_by_label("bad").check()
        await page.get_by_label("Lab", exact=True).select_option("practice")
        await page.get_by_label("Repeat").fill("2")
        await expect(page.locator("#planned")).to_have_text("at most 4 runs")
        await page.get_by_role("button", name="See whether the lab works").click()
        await expect(page.locator("#lab-check")).to_contain_text("works here")
        await page.get_by_role("button", name="Start", exact=True).click()
        await expect(page).to_have_url(re.compile("/batches/"))
        rows = page.locator("tbody tr")
        await rows.nth(0).get_by_role("checkbox").check()
        await expect(page.locator("#batch")).to_contain_text("4 of 4 over: 2 passed 2 failed")
        compare = page.get_by_role("button", name="Compare chosen")
        await expect(page.locator("#chosen")).to_have_text("1 chosen, choose one more.")
        await expect(compare).to_be_disabled()
        await rows.nth(1).get_by_role("checkbox").check()
        await expect(compare).to_be_enabled()
        await page.get_by_role("link", name="All results").click()
        await expect(rows).to_have_count(4)
        await expect(compare).to_be_disabled()
        await rows.nth(0).get_by_role("checkbox").check()
        await rows.nth(1).get_by_role("checkbox").check()
        await expect(compare).to_be_enabled()
        await compare.click()
        await page.wait_for_url("**/compare?**")
        await page.go_back()
        await expect(page.locator("#chosen")).to_have_text("2 chosen.")
        await expect(compare).to_be_enabled()


async def test_a_row_goes_on_while_its_run_does_and_stays_chosen(
    site: Site, chromium: Browser
) -> None:
    async with client(site) as api, visit(chromium, site) as made:
        [run] = await started(api, "slow", labels={"kind": "slow"})
        await made.go("/runs?label=kind:slow")
        row = made.page.locator(f"#row-{run}")
        await expect(row).to_contain_text("running")
        await row.get_by_role("checkbox").check()
        await api.post(f"/api/v1/runs/{run}/cancel")
        await expect(row).to_contain_text("cancelled")
        await expect(row.get_by_role("checkbox")).to_be_checked()
        await expect(made.page.locator("#fresh")).to_have_attribute("hx-trigger", "every 10s")


async def test_newer_runs_are_told_of_and_shown_when_one_wants(
    site: Site, chromium: Browser
) -> None:
    async with client(site) as api, visit(chromium, site) as made:
        labels = {"kind": "news"}
        [run] = await started(api, "slow", labels=labels)
        await made.go("/runs?label=kind:news")
        rows = made.page.locator("tbody tr")
        await expect(rows).to_have_count(1)
        [newer] = await started(api, "good", labels=labels)
        await started(api, "good", labels={"kind": "other"})
        told = made.page.get_by_role("link", name="One newer run: show it")
        await expect(told).to_be_visible()
        await expect(made.page.locator("#said")).to_have_text("One newer run: show it")
        await expect(rows).to_have_count(1)
        await made.looked_over("runs-newer")
        await told.click()
        await expect(made.page.locator(f"#row-{newer}")).to_be_visible()
        await expect(rows).to_have_count(2)
        await expect(told).to_have_count(0)
        await api.post(f"/api/v1/runs/{run}/cancel")


async def test_batches_that_go_on_are_kept_fresh(site: Site, chromium: Browser) -> None:
    async with client(site) as api, visit(chromium, site) as made:
        batch = (await api.post("/api/v1/runs", json=order("slow", repeat=3))).json()["batch"]
        await made.go("/batches")
        link = made.page.locator(f"#open-{batch}")
        row = made.page.locator("tr", has=link)
        await expect(row).to_contain_text("running")
        await link.focus()
        await api.post(f"/api/v1/batches/{batch}/cancel")
        await expect(row).to_contain_text("3 cancelled")
        await expect(link).to_be_focused()
        newer = (await api.post("/api/v1/runs", json=order("good"))).json()["batch"]
        await expect(made.page.locator(f"#open-{newer}")).to_be_visible()
        await expect(link).to_be_focused()


@pytest.mark.parametrize("path", ["/runs", "/settings"])
async def test_the_name_of_the_page_is_in_sight_in_a_narrow_window(
    site: Site, chromium: Browser, path: str
) -> None:
    async with visit(chromium, site, size=NARROW) as made:
        await made.go(path)
        here = made.page.locator(".top nav [aria-current]")
        script = """(one) => {
          const [own, all] = [one, one.parentElement].map((each) => each.getBoundingClientRect());
          return own.left >= all.left - 1 && own.right <= all.right + 1;
        }"""
        assert await here.evaluate(script)


async def test_a_batch_is_cancelled_after_a_question(site: Site, chromium: Browser) -> None:
    async with client(site) as api, visit(chromium, site) as made:
        answer = await api.post("/api/v1/runs", json=order("slow", repeat=2))
        await made.go(f"/batches/{answer.json()['batch']}")
        await made.page.get_by_role("button", name="Cancel").click()
        dialog = made.page.get_by_role("dialog")
        await expect(dialog).to_contain_text("Stop the runs of this batch")
        await made.looked_over("batch-cancel")
        await made.page.keyboard.press("Escape")
        await expect(dialog).to_have_count(0)
        await made.page.get_by_role("button", name="Cancel").click()
        # The question stays open while what it is about is made anew.
        await made.page.locator("#cancel").evaluate("one => one.dataset.old = ''")
        await expect(made.page.locator("#cancel:not([data-old])")).to_have_count(1)
        await made.page.keyboard.press("Escape")
        await expect(made.page.locator("#cancel")).to_be_focused()
        await made.page.keyboard.press("Enter")
        await made.page.locator("#cancel").evaluate("one => one.dataset.old = ''")
        await expect(made.page.locator("#cancel:not([data-old])")).to_have_count(1)
        await dialog.get_by_role("button", name="Stop them").click()
        await expect(made.page.locator("#batch")).to_contain_text("2 of 2 over: 2 cancelled")


async def test_a_token_is_made_shown_once_used_and_revoked(site: Site, chromium: Browser) -> None:
    async with visit(chromium, site) as made:
        page = made.page
        await made.go("/settings")
        await page.get_by_label("Name").fill("a reader")
        await page.get_by_label("Role").select_option("read")
        await page.get_by_role("button", name="Make a token").click()
        secret = await page.get_by_label("The new token").input_value()
        await made.looked_over("settings-token")
        await made.go("/settings")
        assert secret not in await page.content()
        async with visit(chromium, site, token=secret) as other:
            await other.go("/settings")
            await expect(other.page.get_by_text("Tokens are an admin's affair")).to_be_visible()
            await expect(other.page.get_by_role("link", name="Start a run")).to_have_count(0)
            await other.go("/start")
            other.expected("403")
            await other.looked_over("forbidden")
            await page.get_by_role("button", name="Revoke a reader").click()
            await page.get_by_role("dialog").get_by_role("button", name="Revoke it").click()
            await expect(page.get_by_role("row", name="a reader")).to_contain_text("revoked")
            await other.go("/settings")
            await expect(other.page).to_have_url(f"{site.address}/log-in?next=/settings")


async def test_everything_works_without_scripts(site: Site, chromium: Browser) -> None:
    """Filters, a start, and a question before what cannot be taken back."""
    async with visit(chromium, site, scripts=False) as made:
        page = made.page
        await made.go("/start?scenario=drill&agent=slow")
        await page.get_by_label("Lab", exact=True).select_option("practice")
        await page.get_by_label("Labels").fill("kind:plain")
        await page.get_by_role("button", name="Start", exact=True).click()
        await page.get_by_role("button", name="Cancel").click()
        await expect(page.get_by_role("heading", level=1)).to_contain_text("Stop the 1 runs")
        await page.get_by_role("button", name="Stop them").click()
        await expect(page.locator("#batch")).to_contain_text("1 cancelled")
        await made.go("/runs")
        await page.get_by_label("Label", exact=True).fill("kind:plain")
        await page.get_by_role("button", name="Show").click()
        await expect(page.locator("tbody tr")).to_have_count(1)


async def test_pages_work_by_keyboard_alone(site: Site, chromium: Browser) -> None:
    """From the log-in to a started run, and the theme is switched and stays."""
    async with visit(chromium, site, token=None) as made:
        page = made.page
        await made.go("/log-in")
        await page.keyboard.type(site.token)
        await page.keyboard.press("Enter")
        await page.wait_for_url(lambda url: "/log-in" not in url)
        await tab_to(made, "Start a run")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/start")
        await tab_to(made, "A drill drill")
        await page.keyboard.press("Space")
        await tab_to(made, "bad ")
        await page.keyboard.press("Space")
        await tab_to(made, "default")
        await page.keyboard.type("practice")
        await tab_to(made, "Start ")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/batches/*")
        await tab_to(made, "◐Switch between")
        await page.keyboard.press("Enter")
        assert await page.locator("html").get_attribute("data-theme") == "dark"
        await page.reload()
        assert await page.locator("html").get_attribute("data-theme") == "dark"


async def tab_to(made: Visit, words: str) -> None:
    """Press Tab until what has the focus begins with some words; it must be seen to have it."""
    for _ in range(80):
        await made.page.keyboard.press("Tab")
        found = await made.page.evaluate(
            "document.activeElement.matches('ul, main') ? '' :"
            " (document.activeElement.closest('label') ?? document.activeElement)"
            ".textContent.trim().replace(/\\s+/g, ' ')"
        )
        if f"{found} ".startswith(words):
            outline = "getComputedStyle(document.activeElement).outlineStyle"
            assert await made.page.evaluate(outline) != "none"
            return
    raise AssertionError(f"Tab never came to {words!r}")
