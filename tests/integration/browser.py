"""A browser at a real `opsdrill serve`: what anybody who opens the pages gets.

A visit fails on whatever a page may not do: an error in the console, a script that throws, what
the page's own policy forbids, a request to any other host.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.async_api import Browser, ConsoleMessage, Page, Request, async_playwright, expect

ROOT = Path(__file__).parents[2]
CHROMIUM = Path("/usr/bin/chromium")
PACKAGE = "chromium"
AXE = Path(__file__).parent / "web" / "vendor" / "axe-4.14.1.min.js"
SCREENSHOTS = ROOT / "screenshots"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDE, NARROW = (1280, 900), (390, 844)
HANGS = 60
"""Seconds after which a server that does not start counts as hanging."""
WAIT = 20_000
"""Milliseconds that a page may take for what a test waits for."""
expect.set_options(timeout=WAIT)

needs_chromium = pytest.mark.skipif(
    not CHROMIUM.exists(), reason=f"there is no {CHROMIUM}: install the package {PACKAGE}"
)


@dataclass(frozen=True)
class Site:
    """A server that works off runs, and its admin's token."""

    address: str
    token: str
    home: Path
    folder: Path


@contextmanager
def serving(folder: Path, *more: str) -> Iterator[Site]:
    """`opsdrill serve` as a process of its own, stopped in the end as by Ctrl-C.

    Args:
        folder: its data folder is `home` in it, and it works in `work` in it.
        more: further arguments of `serve`.
    """
    home, work = folder / "home", folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    program = [str(Path(sys.executable).with_name("opsdrill")), "--home", str(home)]
    log = folder / "serve.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [*program, "serve", "--bind", "127.0.0.1:0", *more],
            cwd=work,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        try:
            address, token = _told(process, log)
            yield Site(address, token, home, work)
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(HANGS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.stdout is not None
            process.stdout.close()


def _told(process: subprocess.Popen[bytes], log: Path) -> tuple[str, str]:
    """The address and the token that a server tells when it starts."""
    assert process.stdout is not None
    ends = time.monotonic() + HANGS
    address = ""
    while time.monotonic() < ends:
        line = process.stdout.readline().decode()
        if not line:
            raise AssertionError(f"the server ended: {log.read_text()[-2000:]}")
        if found := re.match(r"serving at (\S+)", line):
            address = found[1]
        if found := re.match(r"admin token: (\S+)", line):
            return address, found[1]
    raise AssertionError("the server did not start")


@dataclass
class Visit:
    """A browser's window at a site.

    Attributes:
        page: the window.
        faults: what no page may do; a visit that leaves any fails. A test that asks for an error
            takes out what the browser then says of it, by `expected`.
    """

    page: Page
    site: Site
    width: int
    dark: bool
    faults: list[str] = field(default_factory=list)

    async def go(self, path: str) -> None:
        """Open a page of the site, and wait until its scripts ran."""
        await self.page.goto(f"{self.site.address}{path}", wait_until="load")

    def expected(self, pattern: str) -> None:
        """The faults that this visit was meant to have."""
        assert any(re.search(pattern, fault) for fault in self.faults), self.faults
        self.faults = [fault for fault in self.faults if not re.search(pattern, fault)]

    async def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        script = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        found: int = await self.page.evaluate(script)
        return found

    async def shot(self, name: str) -> None:
        """A picture of the page, for people to look at."""
        SCREENSHOTS.mkdir(exist_ok=True)
        file = f"{name}-{self.width}{'-dark' if self.dark else ''}.png"
        await self.page.screenshot(path=SCREENSHOTS / file, full_page=True)

    async def inaccessible(self) -> list[str]:
        """What axe-core calls serious or critical."""
        if not await self.page.evaluate("'axe' in window"):
            await self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found: dict[str, Any] = await self.page.evaluate("axe.run()")
        return [
            f"{one['id']}: {node['html'][:200]} {node.get('failureSummary', '')[:300]}"
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"]
        ]

    async def looked_over(self, name: str) -> None:
        """The picture of a page, which fits the window and can be used by everybody."""
        await self.shot(name)
        assert await self.overflow() <= 0, f"{name} is wider than {self.width}"
        assert not (found := await self.inaccessible()), f"{name}: {found}"


@asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    """A Chromium without a window."""
    async with async_playwright() as playwright:
        made = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield made
        finally:
            await made.close()


@asynccontextmanager
async def visit(
    chromium: Browser,
    site: Site,
    *,
    size: tuple[int, int] = WIDE,
    scheme: Literal["light", "dark"] = "light",
    token: str | None = "",
    scripts: bool = True,
) -> AsyncIterator[Visit]:
    """A window of its own at a site; what a page may not do fails it in the end.

    Args:
        chromium: the browser.
        site: where.
        size: of the window.
        scheme: what the reader's machine prefers.
        token: who logs in; empty: the admin; None: nobody.
        scripts: whether scripts run.
    """
    context = await chromium.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme=scheme,
        java_script_enabled=scripts,
        reduced_motion="reduce",
    )
    context.set_default_timeout(WAIT)
    page = await context.new_page()
    made = Visit(page, site, size[0], scheme == "dark")
    _watch(made)
    try:
        if token is not None:
            await made.go("/log-in")
            await page.get_by_label("Token").fill(token or site.token)
            await page.get_by_role("button", name="Log in").click()
            await page.wait_for_url(lambda url: "/log-in" not in url)
        yield made
    finally:
        await context.close()
    if made.faults:
        raise AssertionError(f"the pages may not do this: {made.faults}")


def _watch(made: Visit) -> None:
    def console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            made.faults.append(f"console {message.type}: {message.text} {message.location}")

    def asked(request: Request) -> None:
        if not request.url.startswith((made.site.address, "data:", "about:")):
            made.faults.append(f"asked another host: {request.url}")

    made.page.on("console", console)
    made.page.on("pageerror", lambda error: made.faults.append(f"script: {error}"))
    made.page.on("request", asked)
