"""The report: one file, opened from the disk by a browser without any network."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect
from tests.integration.browser import AXE, NARROW, SCREENSHOTS, WIDE, Site, visit
from tests.integration.web.kept_records import hostile, large

MOST_BYTES = 25 * 1024 * 1024


def exported(site: Site, run: str, folder: Path) -> Path:
    """The report as `runs export --to html` writes it."""
    program = str(Path(sys.executable).with_name("opsdrill"))
    subprocess.run(
        [program, "--home", str(site.home), "runs", "export", run, "--to", "html",
         "--output", str(folder)],
        cwd=site.folder, check=True, capture_output=True,
    )  # fmt: skip
    return folder / f"{run}.html"


async def opened(chromium: Browser, file: Path, size: tuple[int, int]) -> tuple[Page, list[str]]:
    """A file in a window without a network, and what it may not do."""
    context = await chromium.new_context(
        viewport={"width": size[0], "height": size[1]}, offline=True, reduced_motion="reduce"
    )
    page = await context.new_page()
    faults: list[str] = []
    page.on("console", lambda message: faults.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on(
        "request",
        lambda request: (
            None if request.url.startswith(file.as_uri()) else faults.append(request.url)
        ),
    )
    await page.goto(file.as_uri())
    return page, faults


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_a_report_opens_from_the_disk_and_asks_nobody(
    site: Site, chromium: Browser, tmp_path: Path, size: tuple[int, int]
) -> None:
    """Hostile text is text there too; its own script runs, by the hash in its policy."""
    page, faults = await opened(chromium, exported(site, hostile(site.home), tmp_path), size)
    await expect(page.locator("#lines")).to_contain_text("<script>alert(1)</script>")
    assert await page.locator("main script, main img, main style").count() == 0
    await page.get_by_label("Show only lines with").fill("no such text")
    await expect(page.locator("#find-told")).to_have_text("0 of 9 lines")
    await page.get_by_label("Show only lines with").fill("")
    rule = page.locator("#rule-1")
    await rule.get_by_role("link").first.click()
    await expect(page.locator(".line.here[open]")).to_contain_text("echo")
    width = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert await page.evaluate(width) <= 0
    SCREENSHOTS.mkdir(exist_ok=True)
    await page.screenshot(path=SCREENSHOTS / f"report-{size[0]}.png", full_page=True)
    assert faults == []


async def test_a_large_report_is_bounded_and_says_so(
    site: Site, chromium: Browser, tmp_path: Path
) -> None:
    file = exported(site, large(site.home), tmp_path)
    assert file.stat().st_size < MOST_BYTES
    print(f"report of 50,000 commands: {file.stat().st_size / 1e6:.1f} MB")
    page, faults = await opened(chromium, file, WIDE)
    await expect(page.locator("#transcript header")).to_contain_text("of 50,101 lines")
    await page.locator("#rule-0 summary").click()
    await page.locator("#rule-0").get_by_role("link").click()
    await expect(page.locator(".line.here[open]")).to_contain_text("needle-99-499")
    assert faults == []


async def test_share_downloads_the_report(site: Site, chromium: Browser, tmp_path: Path) -> None:
    run = hostile(site.home)
    async with visit(chromium, site) as made:
        await made.go(f"/runs/{run}")
        async with made.page.expect_download() as download:
            await made.page.get_by_role("link", name="Share").click()
        file = await download.value
        assert file.suggested_filename == f"run-{run}.html"
        await file.save_as(tmp_path / "shared.html")
    page, faults = await opened(chromium, tmp_path / "shared.html", WIDE)
    await expect(page.locator("#run-rules")).to_contain_text("Completion check")
    assert faults == []


async def test_a_report_can_be_used_by_everybody(
    site: Site, chromium: Browser, tmp_path: Path
) -> None:
    """axe-core is put there before the file's policy counts."""
    file = exported(site, hostile(site.home), tmp_path)
    context = await chromium.new_context(offline=True, bypass_csp=True, reduced_motion="reduce")
    page = await context.new_page()
    await page.goto(file.as_uri())
    await page.evaluate(AXE.read_text(encoding="utf-8"))
    found = await page.evaluate("axe.run()")
    serious = [
        f"{one['id']}: {one['nodes'][0]['html'][:200]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []
